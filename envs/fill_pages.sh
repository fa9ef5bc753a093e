# Fills README.md and the pages of docs/ with recorded results of a scale:  sh envs/fill_pages.sh SCALE
# No rule does this, because most of these files is written by hand.
set -eu

results=results/recorded/$1
# In the order of config/config.yaml, in which the README lists the papers.
papers=$(sed -n 's/^papers: *\[\(.*\)\].*/\1/p' config/config.yaml | tr -d ' ' | tr , ' ')
exec .venv/bin/python -m rarepapers readme \
    --definitions $(for paper in $papers; do echo "results/rendered/$1/definitions/$paper.json"; done) \
    --results "$results" \
    --published config/papers \
    --readme README.md \
    --pages docs/deviations.md docs/findings.md docs/losses.md docs/statistics.md \
    --output "$results/in_readme.md"
