"""
This part of the workflow gets the texts: it downloads and checks data sets, or makes text itself.

REQUIRED INPUTS:

    config/datasets.yaml = what can be downloaded, with checksums
    config/corpora.yaml  = which corpora are synthetic

OUTPUTS:

    file = resources/<dataset>/<file>, a file of a data set or a member of one of its archives
    text = resources/synthetic/<corpus>.txt, characters made by the project
    train, valid, test = resources/synthetic/<corpus>/{train,valid,test}.txt, a language made by the project
    similarity         = resources/synthetic/<corpus>/similarity.tsv, pairs of its words with scores
    source, target     = resources/synthetic/<corpus>/{train,valid,test,domain.second}.{source,target}.txt, sentences in
                         two languages made by the project
    shard              = resources/synthetic/<corpus>.json.gz, documents in one of them

Archives and unfinished downloads lie in resources/cache/, which can be deleted at any time.
"""


# Nodes of a cluster often have no network.
localrules:
    download,


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
        dataset="|".join(TABLE.datasets),
        file=".+",
    conda:
        "../../envs/data.yaml"
    resources:
        # No parameter: what was downloaded stays right when it could now come from another place.
        mirror=TABLE.config["data_mirror"] or "",
    params:
        entry=TABLE.file_entry_of,
    shell:
        """
        # The progress of a download is for the terminal, too.
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
    output:
        text="resources/synthetic/{corpus}.txt",
    log:
        "logs/synthesise/{corpus}.txt",
    wildcard_constraints:
        corpus=TABLE.corpora_of_kind("characters"),
    conda:
        "../../envs/data.yaml"
    params:
        entry=TABLE.corpus_entry_of,
    shell:
        """
        python -m raretok synthesise \
            --corpora config/corpora.yaml \
            --corpus {wildcards.corpus:q} \
            --output {output.text:q} \
            &>{log:q}
        """


rule synthesise_language:
    """
    Make the seeded articles of {wildcards.corpus}, and word pairs with scores
    """
    output:
        train="resources/synthetic/{corpus}/train.txt",
        valid="resources/synthetic/{corpus}/valid.txt",
        test="resources/synthetic/{corpus}/test.txt",
        similarity="resources/synthetic/{corpus}/similarity.tsv",
    log:
        "logs/synthesise_language/{corpus}.txt",
    wildcard_constraints:
        corpus=TABLE.corpora_of_kind("language"),
    conda:
        "../../envs/data.yaml"
    params:
        entry=TABLE.corpus_entry_of,
        folder=subpath(output.train, parent=True),
    shell:
        """
        python -m raretok synthesise \
            --corpora config/corpora.yaml \
            --corpus {wildcards.corpus:q} \
            --output {params.folder:q} \
            &>{log:q}
        """


rule synthesise_pairs:
    """
    Make the seeded sentences of {wildcards.corpus} in two languages, and those of a second domain
    """
    output:
        source=expand(
            "resources/synthetic/{{corpus}}/{split}.source.txt",
            split=["train", "valid", "test", "domain.second"],
        ),
        target=expand(
            "resources/synthetic/{{corpus}}/{split}.target.txt",
            split=["train", "valid", "test", "domain.second"],
        ),
    log:
        "logs/synthesise_pairs/{corpus}.txt",
    wildcard_constraints:
        corpus=TABLE.corpora_of_kind("translation"),
    conda:
        "../../envs/data.yaml"
    params:
        entry=TABLE.corpus_entry_of,
    shell:
        """
        python -m raretok synthesise \
            --corpora config/corpora.yaml \
            --corpus {wildcards.corpus:q} \
            --output resources/synthetic/{wildcards.corpus:q} \
            &>{log:q}
        """


rule synthesise_documents:
    """
    Make the seeded documents of {wildcards.corpus}
    """
    output:
        shard="resources/synthetic/{corpus}.json.gz",
    log:
        "logs/synthesise_documents/{corpus}.txt",
    wildcard_constraints:
        corpus=TABLE.corpora_of_kind("unigrams"),
    conda:
        "../../envs/data.yaml"
    params:
        entry=TABLE.corpus_entry_of,
    shell:
        """
        python -m raretok synthesise \
            --corpora config/corpora.yaml \
            --corpus {wildcards.corpus:q} \
            --output {output.shard:q} \
            &>{log:q}
        """
