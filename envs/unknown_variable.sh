#!/bin/sh
# Says which variable of make was meant:  sh envs/unknown_variable.sh GIVEN KNOWN...
given=$1
shift
upper=$(printf '%s' "$given" | tr '[:lower:]' '[:upper:]')
for known in "$@"; do
    [ "$upper" != "$known" ] || { echo "$given is no variable of make; write $known=..."; exit; }
done
! grep -q "^$given:" config/config.yaml || { echo "$given is a key of the config; write CONFIG='$given=...'"; exit; }
# The same letters in another order, or one letter more or fewer.
letters() { printf '%s' "$1" | fold -w 1 | sort | tr -d '\n'; }
for known in "$@"; do
    [ "$(letters "$upper")" != "$(letters "$known")" ] || { echo "$given is no variable of make; you may mean $known"; exit; }
done
echo "$given is no variable of make; known are $*"
