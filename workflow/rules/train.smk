"""
This part of the workflow trains every method with every seed.

REQUIRED INPUTS:

    manifest = results/<scale>/data/<corpus>/manifest.json
    corpus   = the files that it describes
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

# With `keep_weights: false`, Snakemake deletes weights after evaluation, and trainings keep no second copy of them.
weights = str if TABLE.config["keep_weights"] else temp


rule train:
    """
    Train {wildcards.experiment}/{wildcards.method}, seed {wildcards.seed}, from its last checkpoint if there is one
    """
    input:
        manifest=train.manifest(TABLE),
        corpus=train.corpus_files(TABLE),
        counts=train.outside_counts(TABLE),
        same=train.same_files(TABLE),
    output:
        model=weights("<run>/model.safetensors"),
        last=weights("<run>/last.safetensors"),
        history="<run>/history.csv",
        observations="<run>/observations.npz",
        snapshots=weights("<run>/snapshots.safetensors"),
        training="<run>/training.json",
    log:
        "<logs>/train/<log>",
    conda:
        "../../envs/train.yaml"
    threads: resources.training_threads(TABLE)
    resources:
        gpu=resources.training_gpu(TABLE),
        gpu_percent=resources.training_gpu_percent(TABLE),
        mem_mb=resources.run_megabytes(TABLE),
        runtime=resources.training_minutes(TABLE),
        slurm_extra=resources.slurm_extra(TABLE),
    params:
        run=train.run_json(TABLE),
        folder=subpath(output.model, parent=True),
        state=train.state(TABLE),
        machine=resources.options(TABLE, "device", "runs_per_gpu", "checkpoint_seconds"),
        unkept=train.no_copy(TABLE),
        code=train.code(TABLE),
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
            {params.unkept:q} \
            >>{log:q} 2>&1
        """
