"""
This part of the workflow checks whether long jobs can run, and estimates their cost.

OUTPUTS:

    plan = results/<scale>/plan.txt, the runs to train, with estimates of time, memory and disk space

No rule has the plan as an input, so a new plan retrains nothing. Whenever the workflow starts with runs to train, the
check runs before the first job, and stops the workflow with the reason if something would fail. On a cluster it checks
the submitting machine, while the rule checks a machine that jobs run on. --no-hooks skips the check.
"""


rule preflight:
    """
    Check devices, disk and data for all unfinished runs, on a machine that trains, and print the plan
    """
    log:
        "<logs>/preflight.txt",
    conda:
        "../../envs/train.yaml"
    resources:
        gpu=resources.gpus(TABLE),
    params:
        choices=config_words(TABLE.config),
        project=str(PROJECT),
    shell:
        """
        # Show the plan on the terminal, too.
        exec &> >(tee {log:q})

        python -m rarepapers preflight --project {params.project:q} --config {params.choices:q}
        """
