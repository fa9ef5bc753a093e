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

Training depends on the manifest, which holds checksums of the tokens, not on the large files. A job gets its own entry
of config/corpora.yaml as JSON. `code`, which appears in no shell line, is a digest of the program that writes a corpus:
a changed tokenizer encodes it again.
"""

# Files of every encoded corpus, and those of a parallel text: ids, lines and pieces of both sides.
ENCODED = {
    "manifest": "<results>/data/{corpus}/manifest.json",
    "counts": "<results>/data/{corpus}/counts.npy",
    "vocabulary": "<results>/data/{corpus}/vocabulary.json",
    "tokenizer": "<results>/data/{corpus}/tokenizer.json",
}
PAIRS = {
    "source_counts": "<results>/data/{corpus}/source_counts.npy",
    "sides": expand(
        "<results>/data/{{corpus}}/{split}.{side}.{form}",
        split=["train", "valid", "test"],
        side=["source", "target"],
        form=["npy", "txt", "tok.txt"],
    ),
}


rule prepare:
    """
    Turn the text of {wildcards.corpus} into token ids
      - one id for each character, splits in the order of the text
      - counts of the training split and checksums in the manifest
    """
    input:
        text=corpora.text,
    output:
        train="<results>/data/{corpus}/train.npy",
        valid="<results>/data/{corpus}/valid.npy",
        manifest="<results>/data/{corpus}/manifest.json",
    log:
        "<logs>/prepare/{corpus}.txt",
    wildcard_constraints:
        corpus=corpora.of_kind("characters"),
    conda:
        "../../envs/data.yaml"
    params:
        entry=texts.corpus_entry,
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
        unpack(corpora.splits),
        published=corpora.published_tokenizer,
    output:
        **ENCODED,
        splits=expand("<results>/data/{{corpus}}/{split}.npy", split=["train", "valid", "test"]),
    log:
        "<logs>/encode/{corpus}.txt",
    wildcard_constraints:
        corpus=corpora.of_kind("language"),
    conda:
        "../../envs/data.yaml"
    threads: 2
    resources:
        mem_mb=machine.megabytes(2048),
        runtime=machine.data_minutes,
    params:
        entry=texts.corpus_entry,
        folder=subpath(output.manifest, parent=True),
        code=code.of_encoding("encode"),
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


rule encode_pairs:
    """
    Turn both sides of {wildcards.corpus} into token ids of a joint vocabulary, in the order of target frequency
    """
    input:
        texts=corpora.pair_texts,
        published=corpora.published_tokenizer,
    output:
        **ENCODED,
        **PAIRS,
    log:
        "<logs>/encode_pairs/{corpus}.txt",
    wildcard_constraints:
        corpus=corpora.of_kind("translation"),
    conda:
        "../../envs/data.yaml"
    threads: 2
    resources:
        mem_mb=machine.megabytes(8192),
        runtime=machine.data_minutes,
    params:
        entry=texts.corpus_entry,
        texts=corpora.texts_by_split,
        folder=subpath(output.manifest, parent=True),
        code=code.of_encoding("encode-pairs"),
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


rule reverse_pairs:
    """
    Make {wildcards.corpus} by swapping the sides of another corpus; ids are sorted by counts of the new target side
    """
    input:
        manifest=corpora.forward_manifest,
    output:
        **ENCODED,
        **PAIRS,
    log:
        "<logs>/reverse_pairs/{corpus}.txt",
    wildcard_constraints:
        corpus=corpora.of_kind("translation", reverse=True),
    conda:
        "../../envs/data.yaml"
    resources:
        mem_mb=machine.megabytes(4096),
        runtime=machine.data_minutes,
    params:
        folder=subpath(output.manifest, parent=True),
        code=code.of_encoding("reverse-pairs"),
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
        manifest="<results>/data/{corpus}/manifest.json",
        shard=corpora.shard,
    output:
        counts="<results>/counts/{corpus}/{text}/{shard}.npy",
    log:
        "<logs>/count_unigrams/{corpus}/{text}/{shard}.txt",
    wildcard_constraints:
        text=corpora.of_kind("unigrams"),
        shard="[^/]+",
    conda:
        "../../envs/data.yaml"
    resources:
        mem_mb=machine.megabytes(2048),
        runtime=machine.data_minutes,
    params:
        code=code.of_encoding("count-unigrams"),
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
        counts=corpora.shard_counts,
    output:
        counts="<results>/counts/{corpus}/{text}.npy",
    log:
        "<logs>/merge_counts/{corpus}/{text}.txt",
    wildcard_constraints:
        text=corpora.of_kind("unigrams"),
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
