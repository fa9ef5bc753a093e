#!/bin/sh
# Runs the workflow in .venv and says where the report is:  sh envs/run.sh SCALE [SNAKEMAKE OPTIONS]
# SCALE may be empty: then config/config.yaml decides.
set -u

scale=$1
shift
if [ -n "$scale" ]; then
    set -- "$@" --config "scale=$scale"
else
    scale=$(sed -n 's/^scale: *\([a-z]*\).*/\1/p' config/config.yaml)
fi

# Rules call `python`, which must be the one with the pinned packages.
PATH=$PWD/.venv/bin:$PATH
export PATH
unset PYTHONPATH PYTHONHOME

python envs/unlock.py || exit 1
# Ctrl-C reaches Snakemake and its jobs, which save their state; this shell waits for them and reports.
trap : INT TERM
python -m snakemake "$@"
status=$?
if [ "$status" -ne 0 ]; then
    echo "raretok: not finished (see above). Nothing that is done is lost: the same command continues." >&2
    exit "$status"
fi
report=results/$scale/report/index.html
if [ -f "$report" ]; then
    echo "raretok: the report is $report"
fi
