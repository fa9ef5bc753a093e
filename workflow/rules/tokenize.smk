"""
This part of the workflow turns texts into tokens.

REQUIRED INPUTS:

    text   = resources/<dataset>/<file> or resources/synthetic/<corpus>.txt, as config/corpora.yaml says; of a
             language the texts of its splits
    merges = resources/gpt2_bpe/vocab.bpe, where a language takes published ones

OUTPUTS:

    train, valid = results/<scale>/data/<corpus>/{train,valid}.npy
    manifest     = results/<scale>/data/<corpus>/manifest.json

and of a language

    test       = results/<scale>/data/<corpus>/test.npy
    counts     = results/<scale>/data/<corpus>/counts.npy
    vocabulary = results/<scale>/data/<corpus>/vocabulary.json
    tokenizer  = results/<scale>/data/<corpus>/tokenizer.json

Training depends on the manifest, which names the tokens by their checksums, not on the large files.
"""


rule prepare:
    """
    Turn the text of {wildcards.corpus} into token ids
      - one id for each character, splits in the order of the text
      - counts of the training split and checksums in the manifest
    """
    input:
        text=TABLE.text_of,
    output:
        train="<results>/data/{corpus}/train.npy",
        valid="<results>/data/{corpus}/valid.npy",
        manifest="<results>/data/{corpus}/manifest.json",
    log:
        "<logs>/prepare/{corpus}.txt",
    wildcard_constraints:
        corpus=TABLE.corpora_of_kind("characters"),
    conda:
        "../../envs/raretok.yaml"
    params:
        entry=TABLE.corpus_entry_of,
        folder=subpath(output.manifest, parent=True),
    shell:
        """
        python -m raretok prepare \
            --corpora config/corpora.yaml \
            --corpus {wildcards.corpus:q} \
            --text {input.text:q} \
            --output {params.folder:q} \
            &>{log:q}
        """


rule encode:
    """
    Turn the splits of {wildcards.corpus} into token ids
      - byte-level BPE, by published merges or by merges learnt on the training split, or words
      - ids in the order of training frequency; counts, vocabulary and checksums beside them
    """
    input:
        unpack(TABLE.splits_of),
        merges=TABLE.merges_of,
    output:
        train="<results>/data/{corpus}/train.npy",
        valid="<results>/data/{corpus}/valid.npy",
        test="<results>/data/{corpus}/test.npy",
        counts="<results>/data/{corpus}/counts.npy",
        vocabulary="<results>/data/{corpus}/vocabulary.json",
        tokenizer="<results>/data/{corpus}/tokenizer.json",
        manifest="<results>/data/{corpus}/manifest.json",
    log:
        "<logs>/encode/{corpus}.txt",
    wildcard_constraints:
        corpus=TABLE.corpora_of_kind("language"),
    conda:
        "../../envs/raretok.yaml"
    threads: 2
    resources:
        mem_mb=2048,
    params:
        entry=TABLE.corpus_entry_of,
        folder=subpath(output.manifest, parent=True),
    shell:
        """
        export RAYON_NUM_THREADS={threads}

        python -m raretok encode \
            --corpora config/corpora.yaml \
            --corpus {wildcards.corpus:q} \
            --train {input.train:q} \
            --valid {input.valid:q} \
            --test {input.test:q} \
            --merges {input.merges:q} \
            --output {params.folder:q} \
            &>{log:q}
        """
