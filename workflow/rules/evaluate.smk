"""
This part of the workflow measures what was trained: metrics for tables and claims, arrays for figures.

REQUIRED INPUTS:

    model, last  = results/<scale>/runs/<experiment>/<method>/seed<k>/{model,last}.safetensors
    observations = results/<scale>/runs/<experiment>/<method>/seed<k>/observations.npz
    training     = results/<scale>/runs/<experiment>/<method>/seed<k>/training.json
    manifest     = results/<scale>/data/<corpus>/manifest.json
    checkpoint   = resources/<repository>/model.safetensors, or none (gpt2_weights: skip)

OUTPUTS:

    metrics = results/<scale>/runs/<experiment>/<method>/seed<k>/metrics.json
    arrays  = results/<scale>/runs/<experiment>/<method>/seed<k>/arrays.npz
    gpt2    = results/<scale>/gpt2/<repository>.json

Nothing here is read by training, and no plotting code is read here.
"""

# `sources` are the files that can change a number; editing one measures again, editing a figure does not.


def gpt2_checkpoint(wildcards):
    """Pre-trained weights of one GPT-2, or nothing."""
    if config["gpt2_weights"] == "skip":
        return []
    folder = "resources" if config["gpt2_weights"] == "hub" else config["gpt2_weights"]
    return f"{folder}/{wildcards.repository}/model.safetensors"


def gpt2_settings(wildcards):
    """Name, width, vocabulary and percentile of one GPT-2, as the command's options."""
    settings = TABLE.papers["stop_jostling"]["gpt2"]
    for name, model in settings["models"].items():
        if model["repository"] == wildcards.repository:
            return {
                "name": name,
                "width": model["width"],
                "vocabulary": settings["vocabulary"],
                "percentile_index": settings["percentile_index"],
            }
    raise ValueError(
        f"config/papers/stop_jostling.yaml: gpt2.models has no repository {wildcards.repository}"
    )


rule evaluate:
    """
    Measure both checkpoints of {wildcards.experiment}/{wildcards.method}, seed {wildcards.seed}
      - perplexity, temperature sweep and ranks on the validation text, for each language
      - isotropy, neighbours and clusters of the embeddings
      - ratios of gradient norms, where training observed them
    """
    input:
        model=f"results/{TABLE.scale}/runs/{{experiment}}/{{method}}/seed{{seed}}/model.safetensors",
        last=f"results/{TABLE.scale}/runs/{{experiment}}/{{method}}/seed{{seed}}/last.safetensors",
        observations=f"results/{TABLE.scale}/runs/{{experiment}}/{{method}}/seed{{seed}}/observations.npz",
        training=f"results/{TABLE.scale}/runs/{{experiment}}/{{method}}/seed{{seed}}/training.json",
        manifest=TABLE.manifest_of,
        sources=expand(
            "workflow/raretok/{file}.py",
            file=[
                "evaluation/characters",
                "evaluation/clusters",
                "evaluation/command",
                "evaluation/gradients",
                "evaluation/isotropy",
                "evaluation/neighbours",
                "evaluation/perplexity",
                "evaluation/projection",
                "evaluation/ranking",
                "evaluation/signature",
                "evaluation/tail",
                "models/decoder",
                "models/layers",
            ],
        ),
    output:
        metrics=f"results/{TABLE.scale}/runs/{{experiment}}/{{method}}/seed{{seed}}/metrics.json",
        arrays=f"results/{TABLE.scale}/runs/{{experiment}}/{{method}}/seed{{seed}}/arrays.npz",
    log:
        f"logs/{TABLE.scale}/evaluate/{{experiment}}/{{method}}/seed{{seed}}.txt",
    threads: 1
    resources:
        # `auto` also measures well without a GPU, beside a training that has it.
        gpu=int(config["device"] == "cuda"),
    params:
        folder=subpath(input.model, parent=True),
        settings=TABLE.evaluation_of,
    shell:
        """
        python -m raretok evaluate \
            --run-folder {params.folder:q} \
            --manifest {input.manifest:q} \
            --settings {params.settings:q} \
            --device {config[device]:q} \
            --threads {threads} \
            --metrics {output.metrics:q} \
            --arrays {output.arrays:q} \
            >{log:q} 2>&1
        """


rule measure_gpt2:
    """
    Measure the effective margin and alpha of {wildcards.repository}
      - at random initialisation
      - pre-trained, where gpt2_weights gives its checkpoint
    """
    input:
        checkpoint=gpt2_checkpoint,
        sources=expand(
            "workflow/raretok/{file}.py",
            file=["evaluation/margins", "evaluation/signature", "models/gpt2"],
        ),
    output:
        measured=f"results/{TABLE.scale}/gpt2/{{repository}}.json",
    log:
        f"logs/{TABLE.scale}/measure_gpt2/{{repository}}.txt",
    threads: 1
    resources:
        # `auto` also measures well without a GPU, beside a training that has it.
        gpu=int(config["device"] == "cuda"),
    params:
        gpt2=gpt2_settings,
        seed=1,
    shell:
        """
        python -m raretok measure-gpt2 \
            --name {params.gpt2[name]:q} \
            --width {params.gpt2[width]} \
            --vocabulary {params.gpt2[vocabulary]} \
            --percentile-index {params.gpt2[percentile_index]} \
            --checkpoint {input.checkpoint:q} \
            --seed {params.seed} \
            --device {config[device]:q} \
            --threads {threads} \
            --output {output.measured:q} \
            >{log:q} 2>&1
        """
