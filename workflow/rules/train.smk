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

With `together` in the config, one job train_together_<n> per group of runs comes first. It trains them at once and
keeps the files of each run beside its state; the run's own `train` then puts them in place, or trains a run whose loss
was not finite. The mark in a run's folder stays an input of that run even if `together` changes, so no run is trained
again for how it was trained.

The state of an unfinished training lies in results/<scale>/state/<experiment>/<method>/seed<k>/<run hash>/, which no
rule declares: Snakemake deletes declared outputs before every attempt, and an interrupted training needs its state.
"""

from functools import partial

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
        # Only its existence matters; the trained files lie in the state folder.
        together=ancient(training.joint_mark),
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
        gpu=machine.training_gpus,
        gpu_percent=machine.training_gpu_percent,
        mem_mb=machine.training_megabytes,
        runtime=machine.training_minutes(),
        slurm_extra=machine.slurm_extra,
    params:
        run=training.run_json,
        folder=subpath(output.model, parent=True),
        state=training.state,
        machine=machine.options("device", "runs_per_gpu", "processes", "checkpoint_seconds"),
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


for name, joint in training.joint_runs().items():

    rule:
        """
        Train unfinished runs of one shape together, each with the same result as alone
        """
        name:
            name
        input:
            # Only its existence matters: a group's job runs only if a `train` needs it.
            manifest=ancient(f"<results>/data/{joint.runs[0].settings['corpus']['name']}/manifest.json"),
        output:
            touch(training.marks_of(joint)),
        log:
            f"<logs>/train/together/{joint.hash}.txt",
        retries: 0 if workflow.remote_exec else 2
        conda:
            "../../envs/train.yaml"
        threads: joint.runs[0].settings["training"]["threads"]
        resources:
            **machine.gpu_share(),
            mem_mb=partial(machine.joint_megabytes, joint),
            runtime=machine.training_minutes(),
            slurm_extra=machine.slurm_extra,
        params:
            runs=partial(training.joint_runs_json, joint),
            results=training.results_folder,
            machine=machine.options("device", "runs_per_gpu", "checkpoint_seconds"),
        shell:
            """
            exec python -m rarepapers train-together \
                --runs {params.runs:q} \
                --manifest {input.manifest:q} \
                --results {params.results:q} \
                {params.machine:q} \
                >>{log:q} 2>&1
            """
