#!/bin/sh
# Packs a finished workflow with its provenance, as a Workflow Run RO-Crate:  sh envs/crate.sh "KEY=VALUE ..." [OPTIONS]
#
# A reporter plugin of Snakemake does the work (pip install ".[provenance]"). The crate, raretok-SCALE.zip in the
# project's folder, holds the files that jobs read and wrote, and says which job made each of them, and when.
set -u

config=$1
shift
python=.venv/bin/python
. envs/read_config.sh
unset PYTHONPATH PYTHONHOME

"$python" -c 'import snakemake_report_plugin_rocrate' 2>/dev/null || {
    echo "raretok: the plugin that writes RO-Crates is not installed; install it: $python -m pip install '.[provenance]'" >&2
    exit 1
}
if [ -n "$(echo $config)" ]; then
    set -f
    eval "set -- \"\$@\" --config $config"
    set +f
fi

commit=$(git rev-parse HEAD 2>/dev/null)
# The plugin takes the word after `python -m` for a script, and packs the file of that name.
if [ -e raretok ] && [ ! -L raretok ]; then
    echo "raretok: a file or folder named raretok is in the way; move it: the crate's plugin looks for a file of this name" >&2
    exit 1
fi
trap 'rm -f raretok' EXIT
trap 'exit 130' INT TERM
ln -sfn workflow/rarepapers/__main__.py raretok || exit 1

"$python" -m snakemake --cores 1 --reporter rocrate \
    --report-rocrate-filename "raretok-$scale" \
    --report-rocrate-run-name "raretok, scale $scale" \
    --report-rocrate-run-description "Four papers on rare tokens in neural language generation; commit ${commit:-unknown}" \
    --report-rocrate-run-license MIT \
    --report-rocrate-main-tool python \
    "$@" || {
    echo "raretok: no crate was written, see the message above; the workflow must be finished." >&2
    exit 1
}
echo "raretok: the crate is raretok-$scale.zip"
