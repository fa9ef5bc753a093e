"""
This part of the workflow brings the README up to date with recorded results. It is there where all papers and seeds are
shown: of a part, it would cut what the README has.

REQUIRED INPUTS:

    metrics   = results/recorded/<scale>/metrics.csv
    claims    = results/recorded/<scale>/claims.csv

OUTPUTS:

    readme = results/recorded/<scale>/readme.md, the same within README.md, and numbers of claims in docs/findings.md
"""


localrules:
    readme,


rule readme:
    """
    Put the report's picture, its pages and the verdicts into README.md, between the marks of this scale, if it has them
    """
    input:
        metrics="<results>/metrics.csv",
        claims="<results>/claims.csv",
        definitions=expand("<results>/definitions/{paper}.json", paper=TABLE.papers),
    output:
        # README.md is no output: Snakemake removes those before a job, and most of it is written by hand.
        text="<results>/readme.md",
    log:
        "<logs>/readme.txt",
    conda:
        "../../envs/report.yaml"
    params:
        results=subpath(input.metrics, parent=True),
        code=code.of_command("readme"),
    shell:
        """
        python -m raretok readme \
            --definitions {input.definitions:q} \
            --results {params.results:q} \
            --readme README.md \
            --findings docs/findings.md \
            --output {output.text:q} \
            &>{log:q}
        """
