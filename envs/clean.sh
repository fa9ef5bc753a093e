#!/bin/sh
# Removes the results and logs of one scale, and caches of tools:  sh envs/clean.sh [SCALE]
# Results of other scales stay: they may be weeks of training.
set -u

scale=$1
if [ -z "$scale" ]; then
    scale=$(sed -n 's/^scale: *\([a-z_]*\).*/\1/p' config/config.yaml)
fi
case $scale in
    smoke | small | small_gpu | paper) ;;
    *) echo "raretok: SCALE is '$scale'; it can be smoke, small, small_gpu or paper" >&2 && exit 1 ;;
esac
for path in "results/$scale" "logs/$scale" build .pytest_cache .ruff_cache .hypothesis; do
    if [ -e "$path" ]; then
        echo "removing $path"
        rm -rf "$path"
    fi
done
echo "kept: .venv, resources, .snakemake, all other results"
