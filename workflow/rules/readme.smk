"""
This part of the workflow brings the README up to date with recorded results. It is there where all papers and seeds are
shown: of a part, it would cut what the README has.

REQUIRED INPUTS:

    metrics   = results/recorded/<scale>/metrics.csv
    claims    = results/recorded/<scale>/claims.csv
    figures   = results/recorded/<scale>/figures/<paper>/<figure>.png
    published = config/papers/<paper>/numbers.csv

OUTPUTS:

    readme = results/recorded/<scale>/readme.md, and the same within README.md
"""


localrules:
    readme,


rule readme:
    """
    Put the most telling of the recorded results into README.md, between the marks of this scale, if it has them
    """
    input:
        metrics="<results>/metrics.csv",
        claims="<results>/claims.csv",
        figures=TABLE.headlines,
        numbers=expand("config/papers/{paper}/numbers.csv", paper=TABLE.papers),
    output:
        # README.md is no output: Snakemake removes those before a job, and most of it is written by hand.
        text="<results>/readme.md",
    log:
        "<logs>/readme.txt",
    conda:
        "../../envs/report.yaml"
    params:
        definitions=TABLE.definitions_of,
        results=subpath(input.metrics, parent=True),
        code=TABLE.code("readme"),
    shell:
        """
        python -m raretok readme \
            --definitions {params.definitions:q} \
            --results {params.results:q} \
            --published config/papers \
            --readme README.md \
            --output {output.text:q} \
            &>{log:q}
        """
