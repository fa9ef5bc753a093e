"""
This part of the workflow gets the texts: it downloads and checks data sets, or makes text itself.

REQUIRED INPUTS:

    config/datasets.yaml = what can be downloaded, with checksums
    config/corpora.yaml  = which corpora are synthetic

OUTPUTS:

    file = resources/<dataset>/<file>, a file of a data set or a member of one of its archives
    text = resources/synthetic/<corpus>.txt, made by the project

Archives and unfinished downloads lie in resources/cache/, which can be deleted at any time.
"""

from snakemake.exceptions import WorkflowError

from raretok.data import catalogue
from raretok.errors import UserError

try:
    DATASETS = catalogue.load_datasets("config/datasets.yaml")
    CORPORA = catalogue.load_corpora("config/corpora.yaml")
except UserError as error:
    raise WorkflowError(str(error)) from None


rule download:
    """
    Download {wildcards.file} of {wildcards.dataset}, or take it from the data mirror
      - size and checksum as in config/datasets.yaml; a changed checksum downloads again
    """
    output:
        file="resources/{dataset}/{file}",
    log:
        "logs/download/{dataset}/{file}.txt",
    wildcard_constraints:
        dataset="|".join(DATASETS),
        file=".+",
    retries: 2
    resources:
        # No parameter: what was downloaded stays right when it could now come from another place.
        mirror=config["data_mirror"] or "",
    params:
        entry=lambda wildcards: catalogue.file_params(DATASETS, wildcards.dataset, wildcards.file),
    shell:
        """
        exec &> >(tee {log:q})

        python -m raretok download \
            --datasets config/datasets.yaml \
            --dataset {wildcards.dataset:q} \
            --file {wildcards.file:q} \
            --output {output.file:q} \
            --cache resources/cache \
            --mirror {resources.mirror:q}
        """


rule synthesise:
    """
    Make the seeded text of {wildcards.corpus}
    """
    input:
        sources="workflow/raretok/data/synthetic.py",
    output:
        text="resources/synthetic/{corpus}.txt",
    log:
        "logs/synthesise/{corpus}.txt",
    wildcard_constraints:
        corpus="|".join(CORPORA),
    params:
        entry=lambda wildcards: catalogue.corpus_params(CORPORA, wildcards.corpus),
    shell:
        """
        exec &> >(tee {log:q})

        python -m raretok synthesise \
            --corpora config/corpora.yaml \
            --corpus {wildcards.corpus:q} \
            --output {output.text:q}
        """
