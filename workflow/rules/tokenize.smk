"""
This part of the workflow turns texts into tokens.

REQUIRED INPUTS:

    text = resources/<dataset>/<file> or resources/synthetic/<corpus>.txt, as config/corpora.yaml says

OUTPUTS:

    train, valid = results/<scale>/data/<corpus>/{train,valid}.npy
    manifest     = results/<scale>/data/<corpus>/manifest.json

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
        corpus="|".join(TABLE.corpora),
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
