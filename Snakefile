"""
raretok: four papers on rare tokens, from download to report.

    snakemake --cores all                                                   everything in config/config.yaml
    snakemake --cores all stop_jostling                                     one paper
    snakemake --cores all results/smoke/tables/stop_jostling/table1.csv     one table
    snakemake --cores all results/smoke/figures/stop_jostling/figure3.svg   one figure

Stages, in order: data, tokenize, train, evaluate, report. Input functions, params and resources of the rules are
functions in workflow/rarepapers/rule_inputs, with the run table as their first argument: `training.state` in a rule is the
function `state` of rule_inputs/train.py. Likewise texts stands for data.py, corpora for tokenize.py, evaluation for
evaluate.py, reporting for report.py, machine for resources.py, and code for code.py.
"""

import os
import sys
from inspect import currentframe
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.utils import min_version

min_version("9.12")


# The project's folder, even if another workflow uses this one as a module, or if results go elsewhere (--directory).
# workflow/Snakefile, where the workflow catalogue expects it, is a link to this file.
ROOT = Path(currentframe().f_code.co_filename).resolve().parent
PROJECT = Path(os.path.relpath(ROOT))


configfile: str(ROOT / "config/config.yaml")


# The packages of this checkout, installed or not; jobs call them with the Python that runs Snakemake.
sys.path[:0] = [str(ROOT / "workflow"), str(ROOT / "library")]


report: str(ROOT / "workflow/report/workflow.rst")


from rarepapers.core.errors import UserError
from rarepapers.experiments.run_table import RUN_FOLDER, RUN_NAME, load
from rarepapers.rule_inputs import code, data, evaluate, report as reports, resources, tokenize, train
from rarepapers.rule_inputs.scheduler_timers import keep_one_timer
from rarepapers.rule_inputs.workflow_start import (
    before_start,
    config_words,
    item_pattern,
    use_this_checkout,
    wildcard_patterns,
    with_table,
)

use_this_checkout()

try:
    TABLE = load(config, project=PROJECT)
    TABLE.runs  # checks every method now, so that a mistake is reported in one sentence
    reports.check_paper_files(TABLE)
    reports.check_measured(TABLE)
except UserError as error:
    raise WorkflowError(str(error)) from None

texts, corpora, training, evaluation, reporting, machine, code = (
    with_table(module, TABLE) for module in (data, tokenize, train, evaluate, reports, resources, code)
)


pathvars:
    results=TABLE.results,
    logs=TABLE.logs,
    config=str(PROJECT / "config"),
    docs=str(PROJECT / "docs"),
    run=f"<results>/{RUN_FOLDER}",
    log=f"{RUN_NAME}.txt",


wildcard_constraints:
    **wildcard_patterns(TABLE),


rule all:
    """
    Every table, figure and claim of the papers in config/config.yaml, as pages
    """
    default_target: True
    input:
        reporting.pages(),
        # inputs of the pages; named here so that a deleted one is remade
        reporting.all_items(),
        "<results>/in_readme.md" if reporting.makes_readme() else [],


if not TABLE.render_only:

    include: str(ROOT / "workflow/rules/plan.smk")
    include: str(ROOT / "workflow/rules/data.smk")
    include: str(ROOT / "workflow/rules/tokenize.smk")
    include: str(ROOT / "workflow/rules/align.smk")
    include: str(ROOT / "workflow/rules/train.smk")
    include: str(ROOT / "workflow/rules/evaluate.smk")


include: str(ROOT / "workflow/rules/report.smk")


if reporting.makes_readme():

    include: str(ROOT / "workflow/rules/readme.smk")


for name in TABLE.papers:

    if workflow.is_rule(name):
        raise WorkflowError(f"config/papers/{name}: a rule has this name; give the paper another one")

    rule:
        """
        All tables and figures of one paper
        """
        name:
            name
        input:
            reporting.items(name),


onstart:
    keep_one_timer(workflow.scheduler)
    try:
        before_start(TABLE, elsewhere=not workflow.local_exec)
    except UserError as error:
        raise WorkflowError(str(error)) from None
