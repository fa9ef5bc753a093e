#!/bin/sh
# Runs the workflow in .venv and says where the report is:  sh envs/run.sh "KEY=VALUE ..." [SNAKEMAKE OPTIONS]
# The keys are those of config/config.yaml, which also has the values of all others.
set -u

config=$1
shift
# More than --cores N or --workflow-profile slurm: perhaps a dry run, a list of rules, or a single table.
options=$(($# > 2))
. envs/read_config.sh
venv=.venv
# Reports of finished runs need no torch (envs/setup.sh report).
[ -f .venv/complete-run ] || venv=.venv-report
case " $* " in
    *" --config "* | *" --config="* | *" -C "*)
        echo "raretok: give config to make as CONFIG='KEY=VALUE ...', not as --config in ARGS" >&2
        exit 2
        ;;
    *" --cores 0 "* | *" -c 0 "* | *" -c0 "*)
        echo "raretok: no job can start on 0 cores; give CORES=1 or more, or CORES=all" >&2
        exit 2
        ;;
esac
if [ ! -w . ]; then
    echo "raretok: $PWD is not writable, but results go there; copy the project to a folder of your own" >&2
    exit 2
fi
if [ -n "$(echo $config)" ]; then
    set -f
    eval "set -- \"\$@\" --config $config"
    set +f
fi

# Rules call `python`, which must be the one with the pinned packages.
PATH=$PWD/$venv/bin:$PATH
export PATH
unset PYTHONPATH PYTHONHOME

if [ -n "$finished" ]; then
    # A workflow may be running; it keeps its lock, and will render this report again when its runs are finished.
    set -- "$@" --nolock
else
    python envs/unlock.py || exit 1
fi
started=$(mktemp) || exit 1
# Ctrl-C reaches Snakemake and its jobs, which save their state; this shell waits for them and reports.
trap : INT TERM
python -m snakemake "$@"
status=$?
report=results/${recorded:+rendered/}$scale/report/index.html
made=$(find "$report" -newer "$started" 2>/dev/null)
rm -f "$started"
if [ "$status" -ne 0 ]; then
    echo "raretok: not finished, see the message above. Finished work is kept; the same command continues from there." >&2
    exit "$status"
fi
if [ -n "$made" ] || { [ "$options" = 0 ] && [ -f "$report" ]; }; then
    echo "raretok: the report is $report"
fi
