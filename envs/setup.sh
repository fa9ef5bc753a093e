#!/bin/sh
# Makes .venv with exactly the pinned packages and those of this project (editable):  sh envs/setup.sh [test|report]
#
# `report` is for rendering finished runs: without torch, in .venv-report, unless .venv is complete.
#
# Nothing happens if .venv is complete, which means that its stamp, the last file written, holds the key of the current
# pins, folder and Python. Otherwise it is made anew: an interrupted pip can leave half a package behind, and with pip's
# cache a fresh start is cheap.
set -u

level=${1:-run}
python=${PYTHON:-python3}
venv=.venv
pins=envs/requirements.txt
log=$venv/setup.log
size="about 2 GB, with CUDA libraries 8 GB"

fail() {
    echo "raretok: $*" >&2
    exit 1
}

# A link may lead to the environment of another checkout, which would lose its stamp or its packages.
for folder in .venv .venv-report; do
    [ ! -L "$folder" ] || fail "$folder is a link, and what it leads to may belong to another checkout; remove the link."
done

# The last sentence a user sees when pip failed: the usual causes in plain words, else pip's own error.
explain() {
    if grep -q -i 'no space left on device' "$log"; then
        fail "the disk is full: the environment needs $size (details: $log)."
    elif grep -q -i -E 'name resolution|connection (refused|reset|timed out|broken)|max retries|failed to establish|network is unreachable|proxyerror|getaddrinfo|read timed out|resolve host' "$log"; then
        fail "pip cannot reach its package index; check the network, or PIP_INDEX_URL and the proxy (details: $log)."
    fi
    grep '^ERROR' "$log" | tail -n 3 >&2
    fail "pip could not install the pinned packages, which are for Python 3.11 to 3.13 (details: $log)."
}

version_of() {
    "$1" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null
}

# Digest of all that decides an environment. The folder counts because scripts of .venv hold its path.
key_of() {
    "$venv/bin/python" - "$PWD" pyproject.toml library/pyproject.toml "$pins" "$@" 2>/dev/null <<'PYTHON'
import hashlib, sys
digest = hashlib.sha256(repr((sys.version, sys.argv[1])).encode())
for path in sys.argv[2:]:
    digest.update(open(path, "rb").read())
print(digest.hexdigest())
PYTHON
}

# is_complete LEVEL [EXTRA_REQUIREMENTS]: whether the stamp of that level exists and holds the current key.
is_complete() {
    stamp=$venv/complete-$1
    shift
    [ -f "$stamp" ] && key=$(key_of "$@") && [ "$(cat "$stamp")" = "$key" ]
}

# Any Python already in .venv will do, unless PYTHON names another one.
is_other_python() {
    [ "$python" != python3 ] && [ "$(version_of "$python")" != "$(version_of "$venv/bin/python")" ]
}

install() {
    PIP_DISABLE_PIP_VERSION_CHECK=1 "$venv/bin/python" -m pip install --no-input --progress-bar off "$@" \
        >>"$log" 2>&1 || explain
}

create() {
    command -v "$python" >/dev/null 2>&1 ||
        fail "$python was not found; install Python 3.11 or newer, or name one: make PYTHON=python3.12"
    version=$(version_of "$python") && [ -n "$version" ] ||
        fail "$python does not start, or is no Python; name another one: make PYTHON=python3.12"
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        fail "$python is Python $version, but 3.11 or newer is needed; name one: make PYTHON=python3.12"
    "$python" -c 'import ensurepip, venv' 2>/dev/null ||
        fail "$python has no venv module; install it (Debian and Ubuntu: apt install python3-venv)."
    echo "raretok: making $venv with Python $version; the first time takes some minutes (log: $log)"
    message=$("$python" -m venv --clear "$venv" 2>&1) ||
        fail "$python could not make $venv: $(printf '%s\n' "$message" | tail -n 1)"
    install -r "$pins"
    if [ "$level" != report ]; then
        # setuptools is among the pins, so building the packages downloads nothing more.
        install --no-deps --no-build-isolation --editable library --editable .
    fi
    key_of >"$venv/complete-run"
}

trap 'echo "raretok: interrupted; the same command starts the set-up again." >&2; exit 130' INT TERM

if [ "$level" = report ]; then
    is_complete run && exit
    # .venv is outdated; without its stamp, envs/run.sh takes .venv-report.
    rm -f "$venv/complete-run"
    venv=.venv-report
    pins=envs/requirements-report.txt
    log=$venv/setup.log
    size="about 0.6 GB"
fi
if is_other_python || ! is_complete run; then
    create
fi
if [ "$level" = test ] && ! is_complete test envs/requirements-test.txt; then
    echo "raretok: installing the packages of the tests into .venv (log: $log)"
    # If this is interrupted, the whole environment counts as incomplete.
    mv "$venv/complete-run" "$venv/unfinished"
    install -r envs/requirements-test.txt
    key_of envs/requirements-test.txt >"$venv/complete-test"
    mv "$venv/unfinished" "$venv/complete-run"
fi
