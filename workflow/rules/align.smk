"""
This part of the workflow links the words of both sides of a parallel text.

REQUIRED INPUTS:

    source, target = results/<scale>/data/<corpus>/train.{source,target}.tok.txt, lines of pieces separated by blanks

OUTPUTS:

    links  = results/<scale>/alignments/<corpus>/train.links, in Pharaoh's format
    record = results/<scale>/alignments/<corpus>/train.json, which tool of which version, and how many links

AlignSim compares the similarity of embeddings with these links. How the directions are combined is the command's default,
so that `code` contains it. The job has one thread, because it sums floating-point
numbers, whose order decides the result.
"""


rule align:
    """
    Link the words of the training split of {wildcards.corpus}
      - by fast_align's model in both directions, combined by grow-diag-final-and
      - by the programs fast_align and atools if they are on PATH, else by the same model in NumPy
    """
    input:
        source="<results>/data/{corpus}/train.source.tok.txt",
        target="<results>/data/{corpus}/train.target.tok.txt",
    output:
        links="<results>/alignments/{corpus}/train.links",
        record="<results>/alignments/{corpus}/train.json",
    log:
        "<logs>/align/{corpus}.txt",
    conda:
        "../../envs/align.yaml"
    threads: 1
    resources:
        # The table of word pairs grows with the text; WMT14 needs the memory of a second attempt.
        mem_mb=resources.megabytes(4000),
        runtime=resources.data_minutes(TABLE),
    params:
        code=code.of_command("align"),
    shell:
        """
        OMP_NUM_THREADS={threads} python -m rarepapers align \
            --source {input.source:q} \
            --target {input.target:q} \
            --output {output.links:q} \
            --record {output.record:q} \
            &>{log:q}
        """
