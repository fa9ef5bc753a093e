"""
This part of the workflow turns measurements into tables, figures, verdicts and the pages of the report.

REQUIRED INPUTS:

    metrics   = results/<scale>/runs/<experiment>/<method>/seed<k>/metrics.json
    arrays    = results/<scale>/runs/<experiment>/<method>/seed<k>/arrays.npz
    gpt2      = results/<scale>/gpt2/<repository>.json
    compared  = results/<scale>/comparisons/<experiment>/seed<k>.json
    published = config/papers/<paper>/{numbers,neighbours,hyperparameters,claims}.csv

OUTPUTS:

    metrics = results/<scale>/metrics.csv
    cost    = results/<scale>/cost.csv
    tables  = results/<scale>/tables/<paper>/<item>.{csv,md,tex}
    figures = results/<scale>/figures/<paper>/<item>.{svg,png,pdf}
    claims  = results/<scale>/claims.csv
    agreement, improvement = results/<scale>/{agreement,improvement}.csv
    pages   = results/<scale>/report/*.html, index.html first

Nothing here needs torch or a GPU, and nothing that trains or measures reads this part's files. A table or figure
reads the arrays of its own methods alone. What a job must know of the config comes as one JSON string in `params`.
`code` is a digest of the program that makes an output, found by its imports.
"""


# Seconds each, of which a cluster need not know.
localrules:
    collect,
    cost,
    claims,
    agreement,
    improvement,
    page,


rule collect:
    """
    Gather the metrics of all runs into one csv
    """
    input:
        metrics=TABLE.metrics_files,
    output:
        metrics="<results>/metrics.csv",
    log:
        "<logs>/collect.txt",
    conda:
        "../../envs/report.yaml"
    params:
        code=TABLE.code("collect"),
    shell:
        """
        python -m raretok collect \
            --metrics {input.metrics:q} \
            --output {output.metrics:q} \
            &>{log:q}
        """


rule cost:
    """
    Gather what the training of every run took into one csv
    """
    input:
        metrics=TABLE.metrics_files,
    output:
        cost="<results>/cost.csv",
    log:
        "<logs>/cost.txt",
    conda:
        "../../envs/report.yaml"
    params:
        code=TABLE.code("cost"),
    shell:
        """
        python -m raretok cost \
            --metrics {input.metrics:q} \
            --output {output.cost:q} \
            &>{log:q}
        """


rule table:
    """
    Render {wildcards.item} of {wildcards.paper}, published beside reproduced
    """
    input:
        measured=TABLE.measured_of,
        numbers="config/papers/{paper}/numbers.csv",
        published=TABLE.published_of,
    output:
        csv=report(
            "<results>/tables/{paper}/{item}.csv",
            caption="../report/table.rst",
            category=TABLE.title_of,
            subcategory="tables",
            labels=TABLE.labels_of,
        ),
        md="<results>/tables/{paper}/{item}.md",
        tex="<results>/tables/{paper}/{item}.tex",
    log:
        "<logs>/table/{paper}/{item}.txt",
    conda:
        "../../envs/report.yaml"
    params:
        definition=TABLE.definition_of,
        results=subpath(output.csv, ancestor=3),
        stem=subpath(output.csv, strip_suffix=".csv"),
        code=TABLE.code("table"),
    shell:
        """
        python -m raretok table \
            --item {wildcards.item:q} \
            --definition {params.definition:q} \
            --results {params.results:q} \
            --published config/papers \
            --output-stem {params.stem:q} \
            &>{log:q}
        """


rule figure:
    """
    Draw {wildcards.item} of {wildcards.paper}
    """
    input:
        measured=TABLE.measured_of,
    output:
        svg=report(
            "<results>/figures/{paper}/{item}.svg",
            caption="../report/figure.rst",
            category=TABLE.title_of,
            subcategory="figures",
            labels=TABLE.labels_of,
        ),
        png="<results>/figures/{paper}/{item}.png",
        pdf="<results>/figures/{paper}/{item}.pdf",
    log:
        "<logs>/figure/{paper}/{item}.txt",
    conda:
        "../../envs/report.yaml"
    params:
        definition=TABLE.definition_of,
        results=subpath(output.svg, ancestor=3),
        stem=subpath(output.svg, strip_suffix=".svg"),
        code=TABLE.figure_code_of,
    shell:
        """
        python -m raretok figure \
            --item {wildcards.item:q} \
            --definition {params.definition:q} \
            --results {params.results:q} \
            --output-stem {params.stem:q} \
            &>{log:q}
        """


rule claims:
    """
    Give a verdict on every claim of the papers
    """
    input:
        metrics="<results>/metrics.csv",
        measured=TABLE.measured_for_claims,
        claims=expand("config/papers/{paper}/claims.csv", paper=TABLE.papers),
        numbers=expand("config/papers/{paper}/numbers.csv", paper=TABLE.papers),
    output:
        claims=report(
            "<results>/claims.csv",
            caption="../report/claims.rst",
            category="claims",
            labels={"item": "verdicts on the claims"},
        ),
    log:
        "<logs>/claims.txt",
    conda:
        "../../envs/report.yaml"
    params:
        definitions=TABLE.definitions_of,
        results=subpath(input.metrics, parent=True),
        code=TABLE.claims_code,
    shell:
        """
        python -m raretok claims \
            --definitions {params.definitions:q} \
            --results {params.results:q} \
            --published config/papers \
            --output {output.claims:q} \
            &>{log:q}
        """


rule agreement:
    """
    Say how far our numbers agree with the printed ones: signs, ranks, coefficients of variation
    """
    input:
        metrics="<results>/metrics.csv",
        gpt2=TABLE.gpt2_measured,
        claims=expand("config/papers/{paper}/claims.csv", paper=TABLE.papers),
        numbers=expand("config/papers/{paper}/numbers.csv", paper=TABLE.papers),
    output:
        agreement=report(
            "<results>/agreement.csv",
            caption="../report/agreement.rst",
            category="claims",
            labels={"item": "agreement with the printed numbers"},
        ),
    log:
        "<logs>/agreement.txt",
    conda:
        "../../envs/report.yaml"
    params:
        definitions=TABLE.definitions_of,
        results=subpath(input.metrics, parent=True),
        code=TABLE.code("agreement"),
    shell:
        """
        python -m raretok agreement \
            --definitions {params.definitions:q} \
            --results {params.results:q} \
            --published config/papers \
            --output {output.agreement:q} \
            &>{log:q}
        """


rule improvement:
    """
    Hold every method against the first one of its table, over training seeds
    """
    input:
        metrics="<results>/metrics.csv",
        numbers=expand("config/papers/{paper}/numbers.csv", paper=TABLE.papers),
    output:
        improvement=report(
            "<results>/improvement.csv",
            caption="../report/improvement.rst",
            category="claims",
            labels={"item": "improvement over the first method"},
        ),
    log:
        "<logs>/improvement.txt",
    conda:
        "../../envs/report.yaml"
    params:
        definitions=TABLE.definitions_of,
        results=subpath(input.metrics, parent=True),
        code=TABLE.code("improvement"),
    shell:
        """
        python -m raretok improvement \
            --definitions {params.definitions:q} \
            --results {params.results:q} \
            --published config/papers \
            --output {output.improvement:q} \
            &>{log:q}
        """


rule page:
    """
    Render the report, pages that need no network
    """
    input:
        metrics="<results>/metrics.csv",
        claims="<results>/claims.csv",
        agreement="<results>/agreement.csv",
        improvement="<results>/improvement.csv",
        cost="<results>/cost.csv",
        shown=[path for paper in TABLE.papers for path in TABLE.items(paper)],
        compared=TABLE.comparisons,
        numbers=expand("config/papers/{paper}/numbers.csv", paper=TABLE.papers),
        claims_printed=expand("config/papers/{paper}/claims.csv", paper=TABLE.papers),
        deviations="docs/deviations.md",
        templates=TABLE.page_templates,
    output:
        pages=TABLE.pages,
    log:
        "<logs>/page.txt",
    conda:
        "../../envs/report.yaml"
    params:
        definitions=TABLE.definitions_of,
        results=subpath(input.metrics, parent=True),
        command=TABLE.command,
        code=TABLE.code("page"),
    shell:
        """
        python -m raretok page \
            --definitions {params.definitions:q} \
            --results {params.results:q} \
            --published config/papers \
            --deviations {input.deviations:q} \
            --command {params.command:q} \
            --output {output.pages[0]:q} \
            2>{log:q}
        """
