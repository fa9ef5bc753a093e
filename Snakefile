"""
raretok: four papers on rare tokens, from download to report.

    snakemake --cores all                                                   everything in config/config.yaml
    snakemake --cores all stop_jostling                                     one paper
    snakemake --cores all results/smoke/tables/stop_jostling/table1.csv     one table
    snakemake --cores all results/smoke/figures/stop_jostling/figure3.svg   one figure

Stages, in order: data, tokenize, train, evaluate, report. Input functions, params and resources of the rules are
functions of the run table in workflow/rarepapers/rule_inputs: `train.state(TABLE)` in a rule is what the function `state`
of rule_inputs/train.py makes of it, the function of a job's wildcards that Snakemake calls.
"""

import os
import sys
from importlib.util import find_spec
from inspect import currentframe
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.utils import min_version

min_version("9.12")


# The project's folder, even if another workflow uses this one as a module, or if results go elsewhere (--directory).
ROOT = Path(currentframe().f_code.co_filename).resolve().parent
PROJECT = Path(os.path.relpath(ROOT))
if not (ROOT / "workflow/rarepapers").is_dir():
    raise WorkflowError(
        "raretok works as a module from a clone, not from a URL, because its rules call the Python package beside the "
        "Snakefile; clone the repository and name the Snakefile of the clone"
    )


configfile: str(ROOT / "config/config.yaml")


report: str(ROOT / "workflow/report/workflow.rst")


# The packages of this checkout, installed or not; jobs call them with the Python that runs Snakemake. Another workflow's
# process keeps its paths: there, they must be installed.
IS_MODULE = not workflow.modifier.is_main_snakefile()
if not IS_MODULE:
    sys.path[:0] = [str(ROOT / "workflow"), str(ROOT / "library")]
elif not find_spec("rarepapers"):
    raise WorkflowError(
        "raretok as a module needs its packages in the environment that runs Snakemake: "
        f"python -m pip install --editable {ROOT}/library --editable {ROOT}"
    )

from rarepapers.core.config_files import read_yaml
from rarepapers.core.errors import UserError
from rarepapers.experiments.run_table import RUN_FOLDER, RUN_NAME, load, paper_ids
from rarepapers.rule_inputs import code, data, resources, tokenize, train

# `evaluate` and `report` are functions of Snakemake.
from rarepapers.rule_inputs import evaluate as evaluate_inputs, report as report_inputs
from rarepapers.rule_inputs.scheduler_timers import keep_one_timer
from rarepapers.rule_inputs.workflow_start import (
    before_start,
    check_no_containers,
    check_shared_disk,
    check_writable,
    config_words,
    item_pattern,
    other_scales,
    refuse_scale,
    use_this_checkout,
    wildcard_patterns,
)

if not IS_MODULE:
    use_this_checkout()

try:
    check_writable(Path())
    check_shared_disk(
        workflow.storage_settings.shared_fs_usage, workflow.storage_settings.default_storage_provider
    )
    check_no_containers(workflow.deployment_settings.deployment_method)
    # Another workflow's config may have a section for this one, and leave out what it does not choose.
    TABLE = load(read_yaml(ROOT / "config/config.yaml") | config.get("raretok", config), project=PROJECT)
    TABLE.runs  # checks every method now, so that a mistake is reported in one sentence
    report_inputs.check_paper_files(TABLE)
    report_inputs.check_measured(TABLE)
    report_inputs.link_measurements(TABLE)
except UserError as error:
    raise WorkflowError(str(error)) from None


pathvars:
    results=TABLE.results,
    rendered=TABLE.rendered,
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
        report_inputs.pages(TABLE),
        # inputs of the pages; named here so that a deleted one is remade
        report_inputs.all_items(TABLE),


if not TABLE.render_only:

    include: str(ROOT / "workflow/rules/plan.smk")
    include: str(ROOT / "workflow/rules/data.smk")
    include: str(ROOT / "workflow/rules/tokenize.smk")
    include: str(ROOT / "workflow/rules/align.smk")
    include: str(ROOT / "workflow/rules/train.smk")
    include: str(ROOT / "workflow/rules/evaluate.smk")


include: str(ROOT / "workflow/rules/report.smk")


rule other_scale:
    """
    Say that a target belongs to another scale than the config's
    """
    input:
        refuse_scale(TABLE),
    output:
        "results/{scale}/{file}",
    wildcard_constraints:
        scale=other_scales(TABLE),
        file=".+",


for name in paper_ids(PROJECT):

    if workflow.is_rule(name):
        raise WorkflowError(f"config/papers/{name}: a rule has this name; give the paper another one")

    rule:
        """
        All tables and figures of one paper
        """
        name:
            name
        input:
            report_inputs.items_or_refusal(TABLE, name),


onstart:
    keep_one_timer(workflow.scheduler)
    try:
        if not workflow.touch:
            before_start(TABLE, workflow.dag, elsewhere=not workflow.local_exec)
    except UserError as error:
        raise WorkflowError(str(error)) from None
