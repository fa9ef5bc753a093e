"""
This part of the workflow checks, before anything long, that it can be done, and says what it will take.

OUTPUTS:

    plan = results/<scale>/plan.txt, what is trained, and what of time, memory and disk it is estimated to take

No rule has the plan as an input: a new plan trains nothing again. Instead the check runs whenever the workflow starts
with trainings to do, before its first job, and stops it with the reason where something is in the way. On a cluster
that is the machine that submits; the rule is for the machines that jobs run on. --no-hooks leaves the check out.
"""


rule preflight:
    """
    Check devices, disk and data for all that is not finished, on a machine that trains, and print the plan
    """
    log:
        "<logs>/preflight.txt",
    conda:
        "../../envs/train.yaml"
    resources:
        gpu=machine.gpus(),
    params:
        choices=config_words(TABLE.config),
        project=str(PROJECT),
    shell:
        """
        # The plan is for the terminal, too.
        exec &> >(tee {log:q})

        python -m raretok preflight --project {params.project:q} --config {params.choices:q}
        """
