"""
This part of the workflow inserts recorded results into the README. It exists only if all papers and seeds are shown,
because a part of them would replace the complete text.

REQUIRED INPUTS:

    metrics   = results/recorded/<scale>/metrics.csv
    claims    = results/recorded/<scale>/claims.csv
    tables    = results/recorded/<scale>/tables/<paper>/<item>.csv

OUTPUTS:

    readme = results/recorded/<scale>/in_readme.md, inserted into README.md; measured numbers between markers in
             README.md and docs/ (workflow/rarepapers/reporting/page/filled_numbers.py)
"""


rule readme:
    """
    Insert the report's figure, links and verdicts between this scale's markers in README.md, if it has them
    """
    input:
        metrics="<results>/metrics.csv",
        claims="<results>/claims.csv",
        tables=reporting.all_items(),
        printed=PRINTED,
        definitions=DEFINITIONS,
    output:
        # README.md is not an output, because Snakemake deletes outputs before a job, and most of it is written by hand.
        text="<results>/in_readme.md",
    log:
        "<logs>/readme.txt",
    localrule: True
    conda:
        "../../envs/report.yaml"
    params:
        published=reporting.papers_folder,
        results=subpath(input.metrics, parent=True),
        code=code.of_command("readme"),
    shell:
        """
        python -m rarepapers readme \
            --definitions {input.definitions:q} \
            --results {params.results:q} \
            --published {params.published:q} \
            --readme README.md \
            --pages docs/deviations.md docs/findings.md docs/losses.md docs/statistics.md \
            --output {output.text:q} \
            &>{log:q}
        """
