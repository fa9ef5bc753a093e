#!/bin/sh
# Removes the results and logs of one scale, and caches of tools:  sh envs/clean.sh [SCALE]
# Results of other scales stay: they may be weeks of training.
set -u

config=${1:+scale=$1}
. envs/read_config.sh
case $scale in
    "" | */*) known= ;;
    *) known=config/scales/$scale.yaml ;;
esac
if [ ! -f "$known" ]; then
    names=$(cd config/scales && echo *.yaml | sed 's/\.yaml//g')
    echo "raretok: SCALE is '$scale'; it can be one of: $names" >&2
    exit 1
fi
for path in "results/$scale" "logs/$scale" build .pytest_cache .ruff_cache .hypothesis; do
    if [ -e "$path" ]; then
        echo "removing $path"
        rm -rf "$path"
    fi
done
echo "kept: .venv, resources, .snakemake, all other results"
