"""
This part of the workflow turns measurements into tables, figures, verdicts and one page.

REQUIRED INPUTS:

    metrics   = results/<scale>/runs/<experiment>/<method>/seed<k>/metrics.json
    arrays    = results/<scale>/runs/<experiment>/<method>/seed<k>/arrays.npz
    gpt2      = results/<scale>/gpt2/<repository>.json
    published = config/published/{numbers,neighbours,hyperparameters,claims}.csv

OUTPUTS:

    metrics = results/<scale>/metrics.csv
    tables  = results/<scale>/tables/<paper>/<item>.{csv,md,tex}
    figures = results/<scale>/figures/<paper>/<item>.{svg,png,pdf}
    claims  = results/<scale>/claims.csv
    page    = results/<scale>/report/index.html

Nothing here needs torch or a GPU, and nothing that trains or measures reads this part's files. A table or figure
reads the arrays of its own methods alone. What a job must know of the config comes as one JSON string in `params`.
"""

REPORTING = "workflow/raretok/reporting"


def arrays_of_item(wildcards):
    """Arrays of the runs that a table or figure shows."""
    return TABLE.arrays_for(wildcards.paper, wildcards.item)


def gpt2_of_item(wildcards):
    """Measurements of GPT-2, for the table that shows them."""
    kind = TABLE.item(wildcards.paper, wildcards.item).get("kind")
    return TABLE.gpt2_files(wildcards.paper) if kind == "gpt2" else []


def definition_of_item(wildcards):
    """What the config says about a table or figure, as one JSON string."""
    return TABLE.definition(wildcards.paper, wildcards.item)


rule collect:
    """
    Gather the metrics of all runs into one csv
    """
    input:
        metrics=TABLE.metrics_files(),
    output:
        metrics=f"results/{TABLE.scale}/metrics.csv",
    log:
        f"logs/{TABLE.scale}/collect.txt",
    shell:
        """
        python -m raretok collect \
            --metrics {input.metrics:q} \
            --output {output.metrics:q} \
            &>{log:q}
        """


rule table:
    """
    Render {wildcards.item} of {wildcards.paper}, published beside reproduced
    """
    input:
        metrics=f"results/{TABLE.scale}/metrics.csv",
        arrays=arrays_of_item,
        gpt2=gpt2_of_item,
        numbers="config/published/numbers.csv",
        neighbours="config/published/neighbours.csv",
        hyperparameters="config/published/hyperparameters.csv",
        sources=expand(
            "{folder}/{file}.py",
            folder=REPORTING,
            file=["tables", "table_kinds", "table_text", "neighbour_table", "results"],
        ),
    output:
        csv=report(
            f"results/{TABLE.scale}/tables/{{paper}}/{{item}}.csv",
            caption="../report/table.rst",
            category="{paper}",
            subcategory="tables",
            labels={"item": "{item}"},
        ),
        md=f"results/{TABLE.scale}/tables/{{paper}}/{{item}}.md",
        tex=f"results/{TABLE.scale}/tables/{{paper}}/{{item}}.tex",
    log:
        f"logs/{TABLE.scale}/table/{{paper}}/{{item}}.txt",
    params:
        definition=definition_of_item,
        results=subpath(input.metrics, parent=True),
        published=subpath(input.numbers, parent=True),
        stem=subpath(output.csv, strip_suffix=".csv"),
        scale=TABLE.scale,
    shell:
        """
        python -m raretok table \
            --item {wildcards.item:q} \
            --definition {params.definition:q} \
            --results {params.results:q} \
            --published {params.published:q} \
            --output-stem {params.stem:q} \
            &>{log:q}
        """


rule figure:
    """
    Draw {wildcards.item} of {wildcards.paper}
    """
    input:
        metrics=f"results/{TABLE.scale}/metrics.csv",
        arrays=arrays_of_item,
        sources=expand(
            "{folder}/{file}.py",
            folder=REPORTING,
            file=["figure", "figures/{paper}", "figures/panels", "figures/style"],
            allow_missing=True,
        ),
    output:
        svg=report(
            f"results/{TABLE.scale}/figures/{{paper}}/{{item}}.svg",
            caption="../report/figure.rst",
            category="{paper}",
            subcategory="figures",
            labels={"item": "{item}"},
        ),
        png=f"results/{TABLE.scale}/figures/{{paper}}/{{item}}.png",
        pdf=f"results/{TABLE.scale}/figures/{{paper}}/{{item}}.pdf",
    log:
        f"logs/{TABLE.scale}/figure/{{paper}}/{{item}}.txt",
    params:
        definition=definition_of_item,
        results=subpath(input.metrics, parent=True),
        stem=subpath(output.svg, strip_suffix=".svg"),
        scale=TABLE.scale,
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
        metrics=f"results/{TABLE.scale}/metrics.csv",
        arrays=[
            path
            for paper, settings in TABLE.papers.items()
            for item in settings["figures"]
            for path in TABLE.arrays_for(paper, item)
        ],
        gpt2=[path for paper in TABLE.papers for path in TABLE.gpt2_files(paper)],
        claims="config/published/claims.csv",
        numbers="config/published/numbers.csv",
        sources=expand(
            "{folder}/{file}.py",
            folder=REPORTING,
            file=["claims", "named_claims", "predicates", "intervals", "results"],
        ),
    output:
        claims=report(
            f"results/{TABLE.scale}/claims.csv",
            caption="../report/claims.rst",
            category="claims",
            labels={"item": "claims"},
        ),
    log:
        f"logs/{TABLE.scale}/claims.txt",
    params:
        definitions=[TABLE.definition(paper) for paper in TABLE.papers],
        results=subpath(input.metrics, parent=True),
        published=subpath(input.claims, parent=True),
        scale=TABLE.scale,
    shell:
        """
        python -m raretok claims \
            --definitions {params.definitions:q} \
            --results {params.results:q} \
            --published {params.published:q} \
            --output {output.claims:q} \
            &>{log:q}
        """


rule page:
    """
    Render the report page, which needs no network
    """
    input:
        metrics=f"results/{TABLE.scale}/metrics.csv",
        claims=f"results/{TABLE.scale}/claims.csv",
        tables=[
            f"results/{TABLE.scale}/tables/{paper}/{item}.csv"
            for paper, settings in TABLE.papers.items()
            for item in settings["tables"]
        ],
        figures=[
            f"results/{TABLE.scale}/figures/{paper}/{item}.svg"
            for paper, settings in TABLE.papers.items()
            for item in settings["figures"]
        ],
        numbers="config/published/numbers.csv",
        deviations="docs/deviations.md",
        template=f"{REPORTING}/templates/page.html.j2",
        sources=f"{REPORTING}/page.py",
    output:
        page=report(
            f"results/{TABLE.scale}/report/index.html",
            caption="../report/page.rst",
            category="report",
            labels={"item": "page"},
        ),
    log:
        f"logs/{TABLE.scale}/page.txt",
    params:
        definitions=[TABLE.definition(paper) for paper in TABLE.papers],
        results=subpath(input.metrics, parent=True),
        published=subpath(input.numbers, parent=True),
        scale=TABLE.scale,
    shell:
        """
        python -m raretok page \
            --definitions {params.definitions:q} \
            --results {params.results:q} \
            --published {params.published:q} \
            --deviations {input.deviations:q} \
            --output {output.page:q} \
            2>{log:q}
        """
