"""
This part of the workflow trains every method with every seed.

REQUIRED INPUTS:

    manifest = results/<scale>/data/<corpus>/manifest.json

OUTPUTS:

    model, last  = results/<scale>/runs/<experiment>/<method>/seed<k>/{model,last}.safetensors
    history      = results/<scale>/runs/<experiment>/<method>/seed<k>/history.csv
    observations = results/<scale>/runs/<experiment>/<method>/seed<k>/observations.npz
    training     = results/<scale>/runs/<experiment>/<method>/seed<k>/training.json

The state of an unfinished training lies in results/<scale>/state/<run hash>/, which no rule declares: Snakemake
deletes declared outputs before every attempt, and an interrupted training must find its state again.
"""


rule train:
    """
    Train {wildcards.experiment}/{wildcards.method}, seed {wildcards.seed}
      - continues where an interrupted attempt stopped
      - `sources` are the files that can change a result; editing one trains again, editing a figure does not
    """
    input:
        manifest=TABLE.manifest_of,
        sources=TABLE.training_sources,
    output:
        model=f"results/{TABLE.scale}/runs/{{experiment}}/{{method}}/seed{{seed}}/model.safetensors",
        last=f"results/{TABLE.scale}/runs/{{experiment}}/{{method}}/seed{{seed}}/last.safetensors",
        history=f"results/{TABLE.scale}/runs/{{experiment}}/{{method}}/seed{{seed}}/history.csv",
        observations=f"results/{TABLE.scale}/runs/{{experiment}}/{{method}}/seed{{seed}}/observations.npz",
        training=f"results/{TABLE.scale}/runs/{{experiment}}/{{method}}/seed{{seed}}/training.json",
    log:
        f"logs/{TABLE.scale}/train/{{experiment}}/{{method}}/seed{{seed}}.txt",
    threads: TABLE.threads_of
    resources:
        gpu=TABLE.gpus,
        mem_mb=lambda wildcards, attempt: 2000 * attempt,
    retries: 2
    params:
        run=TABLE.run_json_of,
        state=TABLE.state_of,
        folder=subpath(output.model, parent=True),
    shell:
        """
        python -m raretok train \
            --run {params.run:q} \
            --manifest {input.manifest:q} \
            --output {params.folder:q} \
            --state {params.state:q} \
            --device {config[device]:q} \
            --checkpoint-seconds {config[checkpoint_seconds]} \
            >>{log:q} 2>&1
        """
