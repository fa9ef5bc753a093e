"""
This part of the workflow turns texts into token ids.

REQUIRED INPUTS:

    text   = resources/<dataset>/<file> or resources/synthetic/<corpus>.txt, as in config/corpora.yaml; for a
             language, one text per split
    published = resources/gpt2_bpe/vocab.bpe or another published tokenizer, if the corpus uses one
    texts  = both sides of every split and domain of a parallel text
    shards = other text, whose unigrams are counted

OUTPUTS:

    train, valid = results/<scale>/data/<corpus>/{train,valid}.npy
    manifest     = results/<scale>/data/<corpus>/manifest.json

for a language also

    test       = results/<scale>/data/<corpus>/test.npy
    counts     = results/<scale>/data/<corpus>/counts.npy
    vocabulary = results/<scale>/data/<corpus>/vocabulary.json
    tokenizer  = results/<scale>/data/<corpus>/tokenizer.json

and for a parallel text

    source, target           = results/<scale>/data/<corpus>/<split>.{source,target}.{npy,txt,tok.txt}, for
                               train, valid, test and each further domain (domain.<name>)
    counts, source_counts    = results/<scale>/data/<corpus>/{counts,source_counts}.npy
    vocabulary and tokenizer = results/<scale>/data/<corpus>/{vocabulary,tokenizer}.json, tokenizer.model or codes.txt
    external counts          = results/<scale>/counts/<corpus>/<text>.npy, counts of its target types in another text

The rules that read a corpus name all of these files but the pieces, so that a deleted one is made again. A job gets its
own entry of config/corpora.yaml as JSON. `code`, which appears in no shell line, is a digest of the program that writes
a corpus: a changed tokenizer encodes it again.
"""

import re


rule prepare:
    """
    Turn the text of {wildcards.corpus} into token ids
      - one id for each character, splits in the order of the text
      - counts of the training split and checksums in the manifest
    """
    input:
        text=tokenize.text(TABLE),
    output:
        train="<results>/data/{corpus}/train.npy",
        valid="<results>/data/{corpus}/valid.npy",
        manifest="<results>/data/{corpus}/manifest.json",
    log:
        "<logs>/prepare/{corpus}.txt",
    wildcard_constraints:
        corpus=tokenize.of_kind(TABLE, "characters"),
    conda:
        "../../envs/data.yaml"
    params:
        entry=data.corpus_entry(TABLE),
        folder=subpath(output.manifest, parent=True),
        code=code.of_command("prepare"),
    shell:
        """
        python -m rarepapers prepare \
            --corpus {wildcards.corpus:q} \
            --entry {params.entry:q} \
            --text {input.text:q} \
            --output {params.folder:q} \
            &>{log:q}
        """


rule encode:
    """
    Turn the splits of {wildcards.corpus} into token ids, in the order of training frequency
    """
    input:
        unpack(tokenize.splits(TABLE)),
        published=tokenize.published_tokenizer(TABLE),
    output:
        manifest="<results>/data/{corpus}/manifest.json",
        counts="<results>/data/{corpus}/counts.npy",
        vocabulary="<results>/data/{corpus}/vocabulary.json",
        tokenizer="<results>/data/{corpus}/tokenizer.json",
        splits=expand("<results>/data/{{corpus}}/{split}.npy", split=["train", "valid", "test"]),
    log:
        "<logs>/encode/{corpus}.txt",
    wildcard_constraints:
        corpus=tokenize.of_kind(TABLE, "language"),
    conda:
        "../../envs/data.yaml"
    threads: 2
    resources:
        mem_mb=resources.megabytes(2048),
        runtime=resources.data_minutes(TABLE),
    params:
        entry=data.corpus_entry(TABLE),
        folder=subpath(output.manifest, parent=True),
        code=code.of_encoding(TABLE, "encode"),
    shell:
        """
        RAYON_NUM_THREADS={threads} python -m rarepapers encode \
            --corpus {wildcards.corpus:q} \
            --entry {params.entry:q} \
            --train {input.train:q} \
            --valid {input.valid:q} \
            --test {input.test:q} \
            --published {input.published:q} \
            --output {params.folder:q} \
            &>{log:q}
        """


# One rule per parallel text, because each has its own further domains and files of its tokenizer.
for corpus in tokenize.translations(TABLE):

    rule:
        """
        Turn both sides of {wildcards.corpus} into token ids of a joint vocabulary, in the order of target frequency
        """
        name:
            f"encode_pairs_{corpus}"
        input:
            texts=tokenize.pair_texts(TABLE),
            published=tokenize.published_tokenizer(TABLE),
        output:
            manifest="<results>/data/{corpus}/manifest.json",
            files=expand("<results>/data/{{corpus}}/{name}", name=tokenize.file_names(TABLE, corpus)),
            pieces=expand("<results>/data/{{corpus}}/{name}", name=tokenize.piece_names(TABLE, corpus)),
        log:
            "<logs>/encode_pairs/{corpus}.txt",
        wildcard_constraints:
            corpus=re.escape(corpus),
        conda:
            "../../envs/data.yaml"
        threads: 2
        resources:
            mem_mb=resources.megabytes(8192),
            runtime=resources.data_minutes(TABLE),
        params:
            entry=data.corpus_entry(TABLE),
            texts=tokenize.texts_by_split(TABLE),
            folder=subpath(output.manifest, parent=True),
            code=code.of_encoding(TABLE, "encode-pairs"),
        shell:
            """
            python -m rarepapers encode-pairs \
                --corpus {wildcards.corpus:q} \
                --entry {params.entry:q} \
                --texts {params.texts:q} \
                --published {input.published:q} \
                --output {params.folder:q} \
                &>{log:q}
            """


for corpus in tokenize.translations(TABLE, reverse=True):

    rule:
        """
        Make {wildcards.corpus} by swapping the sides of another corpus; ids are sorted by counts of the new target side
        """
        name:
            f"reverse_pairs_{corpus}"
        input:
            manifest=tokenize.forward_manifest(TABLE),
            corpus=tokenize.forward_files(TABLE),
        output:
            manifest="<results>/data/{corpus}/manifest.json",
            files=expand("<results>/data/{{corpus}}/{name}", name=tokenize.file_names(TABLE, corpus)),
            pieces=expand("<results>/data/{{corpus}}/{name}", name=tokenize.piece_names(TABLE, corpus)),
        log:
            "<logs>/reverse_pairs/{corpus}.txt",
        wildcard_constraints:
            corpus=re.escape(corpus),
        conda:
            "../../envs/data.yaml"
        resources:
            mem_mb=resources.megabytes(4096),
            runtime=resources.data_minutes(TABLE),
        params:
            folder=subpath(output.manifest, parent=True),
            code=code.of_encoding(TABLE, "reverse-pairs"),
        shell:
            """
            python -m rarepapers reverse-pairs \
                --corpus {wildcards.corpus:q} \
                --manifest {input.manifest:q} \
                --output {params.folder:q} \
                &>{log:q}
            """


rule count_unigrams:
    """
    Count the target types of {wildcards.corpus} in one shard of {wildcards.text}
    """
    input:
        manifest=tokenize.manifest(TABLE),
        corpus=tokenize.corpus_files(TABLE),
        shard=tokenize.shard(TABLE),
    output:
        counts="<results>/counts/{corpus}/{text}/{shard}.npy",
    log:
        "<logs>/count_unigrams/{corpus}/{text}/{shard}.txt",
    wildcard_constraints:
        text=tokenize.of_kind(TABLE, "unigrams"),
        shard="[^/]+",
    conda:
        "../../envs/data.yaml"
    resources:
        mem_mb=resources.megabytes(2048),
        runtime=resources.data_minutes(TABLE),
    params:
        code=code.of_encoding(TABLE, "count-unigrams"),
    shell:
        """
        python -m rarepapers count-unigrams \
            --tokenizer-of {input.manifest:q} \
            --shard {input.shard:q} \
            --output {output.counts:q} \
            &>{log:q}
        """


rule merge_counts:
    """
    Add up the counts of all shards of {wildcards.text}
    """
    input:
        counts=tokenize.shard_counts(TABLE),
    output:
        counts="<results>/counts/{corpus}/{text}.npy",
    log:
        "<logs>/merge_counts/{corpus}/{text}.txt",
    wildcard_constraints:
        text=tokenize.of_kind(TABLE, "unigrams"),
    localrule: True  # a single addition, too little for a cluster job
    conda:
        "../../envs/data.yaml"
    params:
        code=code.of_command("merge-counts"),
    shell:
        """
        python -m rarepapers merge-counts \
            --counts {input.counts:q} \
            --output {output.counts:q} \
            &>{log:q}
        """
