#!/bin/sh
# Programs that some tests use and pip cannot install: a browser for the report pages, LaTeX for the tables. On Debian
# and Ubuntu, root installs missing ones; elsewhere, and if that fails, the tests that need them are skipped.
set -u

missing=
command -v chromium >/dev/null 2>&1 || command -v chromium-browser >/dev/null 2>&1 || missing="$missing chromium"
command -v pdflatex >/dev/null 2>&1 || missing="$missing texlive-latex-recommended"
[ -n "$missing" ] || exit 0
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "raretok: missing, tests that need them are skipped:$missing"
    exit 0
fi
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086  # one argument per package is intended
if ! { timeout 60 apt-get -qq update && timeout 300 apt-get -qq install --yes --no-install-recommends $missing; } \
    >/dev/null 2>&1; then
    echo "raretok: could not be installed, tests that need them are skipped:$missing"
fi
exit 0
