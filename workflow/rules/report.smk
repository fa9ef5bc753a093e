"""
This part of the workflow makes tables, figures, verdicts and the pages of the report from measurements.

REQUIRED INPUTS:

    metrics   = results/<scale>/runs/<experiment>/<method>/seed<k>/metrics.json
    arrays    = results/<scale>/runs/<experiment>/<method>/seed<k>/arrays.npz
    gpt2      = results/<scale>/gpt2/<repository>.json
    compared  = results/<scale>/comparisons/<experiment>/seed<k>.json
    published = config/papers/<paper>/{numbers,neighbours,hyperparameters,claims,second_readings}.csv

OUTPUTS:

    definition = <rendered>/definitions/<paper>.json, the config of a paper
    metrics = <rendered>/metrics.csv
    cost    = <rendered>/cost.csv
    tables  = <rendered>/tables/<paper>/<item>.{csv,md,tex}
    figures = <rendered>/figures/<paper>/<item>.{svg,png,pdf}
    claims  = <rendered>/claims.csv
    agreement = <rendered>/agreement.csv
    pages   = <rendered>/report/*.html, index.html first

<rendered> is results/<scale>, or results/rendered/<scale> for recorded runs, which link_measurements shows there.

These rules need neither torch nor a GPU, and training and evaluation read none of their files. A table or figure reads
only the arrays of its own methods. Two params appear in no shell line; they are there because Snakemake reruns a job
when they change: `code`, a digest of the program that makes an output, and `digest`, one of a paper's config.

Tables and figures may be cluster jobs; the other rules take seconds and are local.
"""

# Files of all papers: their config for the report, and their claims and printed numbers.
DEFINITIONS = expand("<rendered>/definitions/{paper}.json", paper=TABLE.papers)
PRINTED = expand("<config>/papers/{paper}/{file}.csv", paper=TABLE.papers, file=["claims", "numbers"])


rule collect:
    """
    Collect the metrics of all runs in one csv
    """
    input:
        metrics=report_inputs.metrics(TABLE),
    output:
        metrics="<rendered>/metrics.csv",
    log:
        "<logs>/collect.txt",
    localrule: True
    conda:
        "../../envs/report.yaml"
    params:
        code=code.of_command("collect"),
    shell:
        """
        python -m rarepapers collect \
            --metrics {input.metrics:q} \
            --output {output.metrics:q} \
            &>{log:q}
        """


rule cost:
    """
    Collect the training cost of all runs in one csv
    """
    input:
        metrics=report_inputs.metrics(TABLE),
    output:
        cost="<rendered>/cost.csv",
    log:
        "<logs>/cost.txt",
    localrule: True
    conda:
        "../../envs/report.yaml"
    params:
        code=code.of_command("cost"),
    shell:
        """
        python -m rarepapers cost \
            --metrics {input.metrics:q} \
            --output {output.cost:q} \
            &>{log:q}
        """


rule definition:
    """
    Write the config of {wildcards.paper} for the report: methods, seeds, tables, figures
    """
    input:
        paper=ancient("<config>/papers/{paper}/paper.yaml"),
        scale=ancient(f"<config>/scales/{TABLE.scale}.yaml"),
    output:
        definition="<rendered>/definitions/{paper}.json",
    log:
        "<logs>/definition/{paper}.txt",
    localrule: True
    conda:
        "../../envs/report.yaml"
    params:
        config=report_inputs.definition_config(TABLE),
        project=str(PROJECT),
        digest=report_inputs.definition_digest(TABLE),
    shell:
        """
        python -m rarepapers definition \
            --project {params.project:q} \
            --config {params.config:q} \
            --paper {wildcards.paper:q} \
            --output {output.definition:q} \
            &>{log:q}
        """


rule table:
    """
    Render {wildcards.item} of {wildcards.paper}, with printed and reproduced numbers
    """
    input:
        definition="<rendered>/definitions/{paper}.json",
        measured=report_inputs.measurements(TABLE),
        published=report_inputs.printed(TABLE),
    output:
        csv=report(
            "<rendered>/tables/{paper}/{item}.csv",
            caption="../report/table.rst",
            category=report_inputs.title(TABLE),
            subcategory="tables",
            labels=report_inputs.labels(TABLE),
        ),
        texts=multiext("<rendered>/tables/{paper}/{item}", ".md", ".tex"),
    log:
        "<logs>/table/{paper}/{item}.txt",
    wildcard_constraints:
        item=item_pattern(TABLE, "tables"),
    conda:
        "../../envs/report.yaml"
    params:
        published=report_inputs.papers_folder(TABLE),
        results=subpath(output.csv, ancestor=3),
        stem=subpath(output.csv, strip_suffix=".csv"),
        code=code.of_command("table"),
    shell:
        """
        python -m rarepapers table \
            --item {wildcards.item:q} \
            --definition {input.definition:q} \
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
        definition="<rendered>/definitions/{paper}.json",
        measured=report_inputs.measurements(TABLE),
        published=report_inputs.printed(TABLE),
    output:
        svg=report(
            "<rendered>/figures/{paper}/{item}.svg",
            caption="../report/figure.rst",
            category=report_inputs.title(TABLE),
            subcategory="figures",
            labels=report_inputs.labels(TABLE),
        ),
        pictures=multiext("<rendered>/figures/{paper}/{item}", ".png", ".pdf"),
    log:
        "<logs>/figure/{paper}/{item}.txt",
    wildcard_constraints:
        item=item_pattern(TABLE, "figures"),
    conda:
        "../../envs/report.yaml"
    params:
        published=report_inputs.papers_folder(TABLE),
        results=subpath(output.svg, ancestor=3),
        stem=subpath(output.svg, strip_suffix=".svg"),
        code=code.of_figures,
    shell:
        """
        python -m rarepapers figure \
            --item {wildcards.item:q} \
            --definition {input.definition:q} \
            --results {params.results:q} \
            --published {params.published:q} \
            --output-stem {params.stem:q} \
            &>{log:q}
        """


rule claims:
    """
    Give a verdict on every claim of the papers
    """
    input:
        definitions=DEFINITIONS,
        metrics="<rendered>/metrics.csv",
        measured=report_inputs.measurements_for_claims(TABLE),
        printed=PRINTED,
    output:
        claims=report(
            "<rendered>/claims.csv",
            caption="../report/claims.rst",
            category="claims",
            labels={"item": "verdicts on the claims"},
        ),
    log:
        "<logs>/claims.txt",
    localrule: True
    conda:
        "../../envs/report.yaml"
    params:
        published=report_inputs.papers_folder(TABLE),
        results=subpath(input.metrics, parent=True),
        code=code.of_claims(TABLE),
    shell:
        """
        python -m rarepapers claims \
            --definitions {input.definitions:q} \
            --results {params.results:q} \
            --published {params.published:q} \
            --output {output.claims:q} \
            &>{log:q}
        """


rule agreement:
    """
    Compare our numbers with the printed ones: signs, ranks, coefficients of variation
    """
    input:
        definitions=DEFINITIONS,
        metrics="<rendered>/metrics.csv",
        gpt2=report_inputs.gpt2_measured(TABLE),
        printed=PRINTED,
    output:
        agreement=report(
            "<rendered>/agreement.csv",
            caption="../report/agreement.rst",
            category="claims",
            labels={"item": "agreement with the printed numbers"},
        ),
    log:
        "<logs>/agreement.txt",
    localrule: True
    conda:
        "../../envs/report.yaml"
    params:
        published=report_inputs.papers_folder(TABLE),
        results=subpath(input.metrics, parent=True),
        code=code.of_command("agreement"),
    shell:
        """
        python -m rarepapers agreement \
            --definitions {input.definitions:q} \
            --results {params.results:q} \
            --published {params.published:q} \
            --output {output.agreement:q} \
            &>{log:q}
        """


rule page:
    """
    Render the report as HTML pages that need no network
    """
    input:
        definitions=DEFINITIONS,
        metrics="<rendered>/metrics.csv",
        summaries=expand("<rendered>/{name}.csv", name=["claims", "agreement", "cost"]),
        shown=report_inputs.all_items(TABLE),
        compared=report_inputs.comparisons(TABLE),
        printed=PRINTED,
        second_readings=report_inputs.second_readings(TABLE),
        deviations="<docs>/deviations.md",
        readme=report_inputs.readme(TABLE),
    output:
        pages=report_inputs.pages(TABLE),
    log:
        "<logs>/page.txt",
    localrule: True
    conda:
        "../../envs/report.yaml"
    params:
        published=report_inputs.papers_folder(TABLE),
        results=subpath(input.metrics, parent=True),
        command=report_inputs.command(TABLE),
        code=code.of_pages,
    shell:
        """
        python -m rarepapers page \
            --definitions {input.definitions:q} \
            --results {params.results:q} \
            --published {params.published:q} \
            --comparisons {input.compared:q} \
            --deviations {input.deviations:q} \
            --readme {input.readme:q} \
            --command {params.command:q} \
            --output {output.pages[0]:q} \
            2>{log:q}
        """
