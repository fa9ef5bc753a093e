"""
This part of the workflow measures what was trained: metrics for tables and claims, arrays for figures.

REQUIRED INPUTS:

    model, last  = results/<scale>/runs/<experiment>/<method>/seed<k>/{model,last}.safetensors
    observations = results/<scale>/runs/<experiment>/<method>/seed<k>/observations.npz
    snapshots    = results/<scale>/runs/<experiment>/<method>/seed<k>/snapshots.safetensors
    training     = results/<scale>/runs/<experiment>/<method>/seed<k>/training.json
    manifest     = results/<scale>/data/<corpus>/manifest.json
    similarity   = resources/<dataset>/<file>, pairs of words with a human score
    links        = results/<scale>/alignments/<corpus>/train.links, where a translation's words are aligned
    checkpoint   = resources/<repository>/model.safetensors, or none (gpt2_weights: skip)

OUTPUTS:

    metrics    = results/<scale>/runs/<experiment>/<method>/seed<k>/metrics.json
    arrays     = results/<scale>/runs/<experiment>/<method>/seed<k>/arrays.npz
    hypotheses = results/<scale>/runs/<experiment>/<method>/seed<k>/hypotheses.json, a translation's texts by split
    measurable = results/<scale>/runs/<experiment>/<method>/seed<k>/measurable.npz, what later metrics need of the weights
    comparison = results/<scale>/comparisons/<experiment>/seed<k>.json, whether translations differ by chance
    gpt2       = results/<scale>/gpt2/<repository>.json

`code` is a digest of the program that measures such a run: a change to it measures again, one to a figure does not.
Nothing here is read by training.
"""


rule evaluate:
    """
    Measure both checkpoints of {wildcards.experiment}/{wildcards.method}, seed {wildcards.seed}
      - characters: perplexity, temperature sweep and ranks on the validation text, for each language
      - a language: perplexity and distinct predictions for each group of types, greedy continuations
      - pairs to translate: BLEU and chrF of beam search, and what the output bias does
      - isotropy, neighbours, projections and word similarity of the embeddings
      - what training observed
    """
    input:
        model="<run>/model.safetensors",
        last="<run>/last.safetensors",
        history="<run>/history.csv",
        observations="<run>/observations.npz",
        snapshots="<run>/snapshots.safetensors",
        training="<run>/training.json",
        manifest=TABLE.manifest_of,
        similarity=TABLE.similarity_files_of,
        links=TABLE.links_of,
    output:
        metrics="<run>/metrics.json",
        arrays="<run>/arrays.npz",
        hypotheses="<run>/hypotheses.json",
        measurable="<run>/measurable.npz",
    log:
        "<logs>/evaluate/<log>",
    conda:
        "../../envs/evaluate.yaml"
    threads: 1
    resources:
        gpu=TABLE.gpus,
        gpu_percent=TABLE.gpu_percent,
        mem_mb=TABLE.memory_of,
        runtime=TABLE.evaluation_minutes_of,
        # As in rule train: jobs of one group must ask for the same.
        slurm_extra=TABLE.early_warning,
        device=TABLE.config["device"],
        runs_per_gpu=TABLE.config["runs_per_gpu"],
    params:
        folder=subpath(input.model, parent=True),
        settings=TABLE.evaluation_of,
        similarity=TABLE.similarity_of,
        code=TABLE.evaluation_code_of,
    shell:
        """
        python -m raretok evaluate \
            --run-folder {params.folder:q} \
            --manifest {input.manifest:q} \
            --settings {params.settings:q} \
            --word-similarity {params.similarity:q} \
            --links {input.links:q} \
            --device {resources.device:q} \
            --runs-per-gpu {resources.runs_per_gpu} \
            --threads {threads} \
            --metrics {output.metrics:q} \
            --arrays {output.arrays:q} \
            --hypotheses {output.hypotheses:q} \
            --measurable {output.measurable:q} \
            >{log:q} 2>&1
        """


rule compare:
    """
    Hold the translations of all methods of {wildcards.experiment} against the first, seed {wildcards.seed}
      - BLEU and chrF, by paired bootstrap and by approximate randomisation
    """
    input:
        references=TABLE.references_of,
        hypotheses=TABLE.hypotheses_of,
    output:
        comparison="<results>/comparisons/{experiment}/seed{seed}.json",
    log:
        "<logs>/compare/{experiment}/seed{seed}.txt",
    conda:
        "../../envs/evaluate.yaml"
    params:
        systems=TABLE.systems_of,
        code=TABLE.code("compare"),
    shell:
        """
        python -m raretok compare \
            --references {input.references:q} \
            --hypotheses {params.systems:q} \
            --output {output.comparison:q} \
            &>{log:q}
        """


rule measure_gpt2:
    """
    Measure the effective margin and alpha of {wildcards.repository}
      - at the random initialisation of every seed
      - pre-trained, where gpt2_weights gives its checkpoint
    """
    input:
        checkpoint=TABLE.gpt2_checkpoint_of,
    output:
        measured="<results>/gpt2/{repository}.json",
    log:
        "<logs>/measure_gpt2/{repository}.txt",
    conda:
        "../../envs/evaluate.yaml"
    threads: 1
    resources:
        gpu=TABLE.gpus,
        gpu_percent=TABLE.gpu_percent,
        mem_mb=TABLE.gpt2_memory_of,
        runtime=TABLE.evaluation_minutes_of,
        device=TABLE.config["device"],
        runs_per_gpu=TABLE.config["runs_per_gpu"],
    params:
        gpt2=TABLE.gpt2_of,
        seeds=TABLE.usual_seeds,
        code=TABLE.code("measure-gpt2"),
    shell:
        """
        python -m raretok measure-gpt2 \
            --name {params.gpt2[name]:q} \
            --width {params.gpt2[width]} \
            --vocabulary {params.gpt2[vocabulary]} \
            --percentile-index {params.gpt2[percentile_index]} \
            --checkpoint {input.checkpoint:q} \
            --seeds {params.seeds} \
            --device {resources.device:q} \
            --runs-per-gpu {resources.runs_per_gpu} \
            --threads {threads} \
            --output {output.measured:q} \
            >{log:q} 2>&1
        """
