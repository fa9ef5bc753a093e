#!/bin/sh
# Programs that some tests use and pip does not have: a browser for the report page, LaTeX for the tables. On Debian and
# Ubuntu, as root, missing ones are installed; anywhere else, and where that fails, those tests are skipped, by name.
set -u

missing=
command -v chromium >/dev/null 2>&1 || command -v chromium-browser >/dev/null 2>&1 || missing="$missing chromium"
command -v pdflatex >/dev/null 2>&1 || missing="$missing texlive-latex-recommended"
[ -n "$missing" ] || exit 0
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "raretok: not there, tests that need it are skipped:$missing"
    exit 0
fi
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086  # one argument a package is meant
if ! { timeout 60 apt-get -qq update && timeout 300 apt-get -qq install --yes --no-install-recommends $missing; } \
    >/dev/null 2>&1; then
    echo "raretok: could not be installed, tests that need it are skipped:$missing"
fi
exit 0
