"""
This part of the workflow provides the texts: it downloads and checks data sets, or makes synthetic text.

OUTPUTS:

    file = resources/<dataset>/<file>, a file of a data set or a member of one of its archives
    text = resources/synthetic/<corpus>, synthetic text, depending on the kind of corpus
             characters   .txt
             language     /{train,valid,test}.txt, and /similarity.tsv, word pairs with scores
             translation  /{train,valid,test,domain.second}.{source,target}.txt, sentences in two languages
             unigrams     .json.gz, documents in one of these languages

config/datasets.yaml lists the downloads with their checksums, config/corpora.yaml the synthetic corpora. A job gets its
own entry as JSON. Archives and unfinished downloads lie in resources/cache/, which can be deleted at any time.
"""

from rarepapers.data.catalogue import SYNTHETIC_FILES


rule download:
    """
    Download {wildcards.file} of {wildcards.dataset}, or take it from the data mirror
      - size and checksum are checked; a changed checksum repeats the download, changed code does not
    """
    output:
        file="resources/{dataset}/{file}",
    log:
        "logs/download/{dataset}/{file}.txt",
    wildcard_constraints:
        dataset="|".join(TABLE.datasets),
        file=".+",
    localrule: True  # cluster nodes often have no network
    conda:
        "../../envs/data.yaml"
    params:
        entry=data.file_entry(TABLE),
        sources=data.file_sources(TABLE),
        machine=resources.options(TABLE, "data_mirror"),
    shell:
        """
        # Show the progress on the terminal, too.
        exec &> >(tee {log:q})

        python -m rarepapers download \
            --dataset {wildcards.dataset:q} \
            --entry {params.entry:q} \
            --sources {params.sources:q} \
            --output {output.file:q} \
            --cache resources/cache \
            {params.machine:q}
        """


for kind, files in SYNTHETIC_FILES.items():

    rule:
        """
        Make the seeded text of {wildcards.corpus}
        """
        name:
            f"synthesise_{kind}"
        output:
            text=expand("resources/synthetic/{{corpus}}{file}", file=files),
        log:
            "logs/synthesise/{corpus}.txt",
        wildcard_constraints:
            corpus=tokenize.of_kind(TABLE, kind),
        conda:
            "../../envs/data.yaml"
        params:
            entry=data.corpus_entry(TABLE),
            code=code.of_synthesis(kind),
        shell:
            """
            python -m rarepapers synthesise \
                --entry {params.entry:q} \
                --output {output.text:q} \
                &>{log:q}
            """
