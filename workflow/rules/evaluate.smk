"""
This part of the workflow evaluates trained models: metrics for tables and claims, arrays for figures.

REQUIRED INPUTS:

    trained      = results/<scale>/runs/<experiment>/<method>/seed<k>/, all files of rule train
    manifest     = results/<scale>/data/<corpus>/manifest.json
    corpus       = the files that it describes
    similarity   = resources/<dataset>/<file>, word pairs with human scores
    links        = results/<scale>/alignments/<corpus>/train.links, for evaluations with AlignSim
    checkpoint   = resources/<repository>/model.safetensors, or none (gpt2_weights: skip)

OUTPUTS:

    metrics    = results/<scale>/runs/<experiment>/<method>/seed<k>/metrics.json
    arrays     = results/<scale>/runs/<experiment>/<method>/seed<k>/arrays.npz
    hypotheses = results/<scale>/runs/<experiment>/<method>/seed<k>/hypotheses.json, translations by split
    comparison = results/<scale>/comparisons/<experiment>/seed<k>.json, significance tests between translations
    gpt2       = results/<scale>/gpt2/<repository>.json

`code` is a digest of the program that measures such a run: a change to it repeats the evaluation, a change to a figure
does not. Training reads none of these files.
"""


rule evaluate:
    """
    Measure both checkpoints of {wildcards.experiment}/{wildcards.method}, seed {wildcards.seed}
    """
    input:
        trained=rules.train.output,
        manifest=train.manifest(TABLE),
        corpus=train.corpus_files(TABLE),
        similarity=evaluate_inputs.similarity_files(TABLE),
        links=evaluate_inputs.links(TABLE),
    output:
        metrics="<run>/metrics.json",
        arrays="<run>/arrays.npz",
        hypotheses="<run>/hypotheses.json",
    log:
        "<logs>/evaluate/<log>",
    conda:
        "../../envs/evaluate.yaml"
    resources:
        **resources.gpu_share(TABLE),
        mem_mb=resources.run_megabytes(TABLE),
        runtime=resources.evaluation_minutes(TABLE),
        slurm_extra=resources.slurm_extra(TABLE),
    params:
        folder=subpath(output.metrics, parent=True),
        settings=evaluate_inputs.settings(TABLE),
        similarity=evaluate_inputs.similarity(TABLE),
        machine=resources.options(TABLE, "device", "runs_per_gpu"),
        code=evaluate_inputs.code(TABLE),
    shell:
        """
        python -m rarepapers evaluate \
            --run-folder {params.folder:q} \
            --manifest {input.manifest:q} \
            --settings {params.settings:q} \
            --word-similarity {params.similarity:q} \
            --links {input.links:q} \
            --threads {threads} \
            {params.machine:q} \
            --metrics {output.metrics:q} \
            --arrays {output.arrays:q} \
            --hypotheses {output.hypotheses:q} \
            >{log:q} 2>&1
        """


rule compare:
    """
    Compare the translations of all methods of {wildcards.experiment} with the first, seed {wildcards.seed}
      - BLEU and chrF, by paired bootstrap and by approximate randomisation
    """
    input:
        manifest=evaluate_inputs.references(TABLE),
        corpus=evaluate_inputs.files_of_references(TABLE),
        hypotheses=evaluate_inputs.hypotheses(TABLE),
    output:
        comparison="<results>/comparisons/{experiment}/seed{seed}.json",
    log:
        "<logs>/compare/{experiment}/seed{seed}.txt",
    conda:
        "../../envs/evaluate.yaml"
    params:
        systems=evaluate_inputs.systems(TABLE),
        code=code.of_command("compare"),
    shell:
        """
        python -m rarepapers compare \
            --manifest {input.manifest:q} \
            --hypotheses {params.systems:q} \
            --output {output.comparison:q} \
            &>{log:q}
        """


rule measure_gpt2:
    """
    Measure the effective margin and alpha of {wildcards.repository}, randomly initialised and, if given, pre-trained
    """
    input:
        checkpoint=evaluate_inputs.gpt2_checkpoint(TABLE),
    output:
        measured="<results>/gpt2/{repository}.json",
    log:
        "<logs>/measure_gpt2/{repository}.txt",
    conda:
        "../../envs/evaluate.yaml"
    resources:
        **resources.gpu_share(TABLE),
        mem_mb=resources.gpt2_megabytes(TABLE),
        runtime=resources.evaluation_minutes(TABLE),
    params:
        gpt2=evaluate_inputs.gpt2(TABLE),
        seeds=TABLE.usual_seeds,
        machine=resources.options(TABLE, "device", "runs_per_gpu"),
        code=code.of_command("measure-gpt2"),
    shell:
        """
        python -m rarepapers measure-gpt2 \
            --name {params.gpt2[name]:q} \
            --width {params.gpt2[width]} \
            --vocabulary {params.gpt2[vocabulary]} \
            --percentile-index {params.gpt2[percentile_index]} \
            --checkpoint {input.checkpoint:q} \
            --seeds {params.seeds} \
            --threads {threads} \
            {params.machine:q} \
            --output {output.measured:q} \
            >{log:q} 2>&1
        """
