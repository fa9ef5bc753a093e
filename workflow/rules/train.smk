"""
This part of the workflow trains every method with every seed.

REQUIRED INPUTS:

    manifest = results/<scale>/data/<corpus>/manifest.json
    counts   = counts of the corpus's types in another text, if the output bias starts from them
    same     = training.json of another run with the same weights, whose files are copied

OUTPUTS:

    model, last  = results/<scale>/runs/<experiment>/<method>/seed<k>/{model,last}.safetensors
    history      = results/<scale>/runs/<experiment>/<method>/seed<k>/history.csv
    observations = results/<scale>/runs/<experiment>/<method>/seed<k>/observations.npz
    snapshots    = results/<scale>/runs/<experiment>/<method>/seed<k>/snapshots.safetensors
    training     = results/<scale>/runs/<experiment>/<method>/seed<k>/training.json

The state of an unfinished training lies in results/<scale>/state/<experiment>/<method>/seed<k>/<run hash>/, which no
rule declares: Snakemake deletes declared outputs before every attempt, and an interrupted training needs its state.
"""

# With `keep_weights: false`, weights are deleted after evaluation.
weights = str if TABLE.config["keep_weights"] else temp


rule train:
    """
    Train {wildcards.experiment}/{wildcards.method}, seed {wildcards.seed}, from its last checkpoint if there is one
    """
    input:
        manifest=training.manifest_to_train,
        counts=training.outside_counts,
        same=training.same_files,
    output:
        model=weights("<run>/model.safetensors"),
        last=weights("<run>/last.safetensors"),
        history="<run>/history.csv",
        observations="<run>/observations.npz",
        snapshots=weights("<run>/snapshots.safetensors"),
        training="<run>/training.json",
    log:
        "<logs>/train/<log>",
    # In a cluster job only the submitting Snakemake retries; otherwise retries would multiply.
    retries: 0 if workflow.remote_exec else 2
    conda:
        "../../envs/train.yaml"
    threads: machine.training_threads
    resources:
        gpu=machine.training_gpu,
        gpu_percent=machine.training_gpu_percent,
        mem_mb=machine.run_megabytes,
        runtime=machine.training_minutes(),
        slurm_extra=machine.slurm_extra,
    params:
        run=training.run_json,
        folder=subpath(output.model, parent=True),
        state=training.state,
        machine=machine.options("device", "runs_per_gpu", "checkpoint_seconds"),
        code=training.code,
    shell:
        """
        exec python -m rarepapers train \
            --run {params.run:q} \
            --manifest {input.manifest:q} \
            --counts {input.counts:q} \
            --same-as {input.same:q} \
            --output {params.folder:q} \
            --state {params.state:q} \
            {params.machine:q} \
            >>{log:q} 2>&1
        """
