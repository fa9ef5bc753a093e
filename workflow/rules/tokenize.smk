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
        text=lambda wildcards: catalogue.text_file(CORPORA, wildcards.corpus),
        sources="workflow/raretok/data/corpora.py",
    output:
        train=f"results/{TABLE.scale}/data/{{corpus}}/train.npy",
        valid=f"results/{TABLE.scale}/data/{{corpus}}/valid.npy",
        manifest=f"results/{TABLE.scale}/data/{{corpus}}/manifest.json",
    log:
        f"logs/{TABLE.scale}/prepare/{{corpus}}.txt",
    wildcard_constraints:
        corpus="|".join(CORPORA),
    params:
        entry=lambda wildcards: catalogue.corpus_params(CORPORA, wildcards.corpus),
        folder=subpath(output.manifest, parent=True),
    shell:
        """
        exec &> >(tee {log:q})

        python -m raretok prepare \
            --corpora config/corpora.yaml \
            --corpus {wildcards.corpus:q} \
            --text {input.text:q} \
            --output {params.folder:q}
        """
