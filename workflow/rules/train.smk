"""
This part of the workflow trains every method with every seed.

REQUIRED INPUTS:

    manifest = results/<scale>/data/<corpus>/manifest.json
    counts   = counts of the corpus's types in another text, where the output bias starts from those

OUTPUTS:

    model, last  = results/<scale>/runs/<experiment>/<method>/seed<k>/{model,last}.safetensors
    history      = results/<scale>/runs/<experiment>/<method>/seed<k>/history.csv
    observations = results/<scale>/runs/<experiment>/<method>/seed<k>/observations.npz
    snapshots    = results/<scale>/runs/<experiment>/<method>/seed<k>/snapshots.safetensors
    training     = results/<scale>/runs/<experiment>/<method>/seed<k>/training.json

The state of an unfinished training lies in results/<scale>/state/<experiment>/<method>/seed<k>/<run hash>/, which no
rule declares: Snakemake deletes declared outputs before every attempt, and an interrupted training must find its
state again.
"""


rule train:
    """
    Train {wildcards.experiment}/{wildcards.method}, seed {wildcards.seed}
      - continues where an interrupted attempt stopped
      - `sources` are the files that can change a result; editing one trains again, editing a figure does not
    """
    input:
        manifest=TABLE.manifest_of,
        counts=TABLE.outside_counts_of,
        sources=TABLE.training_sources_of,
    output:
        model="<run>/model.safetensors",
        last="<run>/last.safetensors",
        history="<run>/history.csv",
        observations="<run>/observations.npz",
        snapshots="<run>/snapshots.safetensors",
        training="<run>/training.json",
    log:
        "<logs>/train/<log>",
    retries: 2
    conda:
        "../../envs/train.yaml"
    threads: TABLE.threads_of
    resources:
        gpu=TABLE.gpus,
        mem_mb=TABLE.memory_of,
        # No parameters: the hardware and how often the state is saved change no result.
        device=TABLE.config["device"],
        checkpoint_seconds=TABLE.config["checkpoint_seconds"],
    params:
        run=TABLE.run_json_of,
        state=TABLE.state_of,
        folder=subpath(output.model, parent=True),
    shell:
        """
        exec python -m raretok train \
            --run {params.run:q} \
            --manifest {input.manifest:q} \
            --counts {input.counts:q} \
            --output {params.folder:q} \
            --state {params.state:q} \
            --device {resources.device:q} \
            --checkpoint-seconds {resources.checkpoint_seconds} \
            >>{log:q} 2>&1
        """
