"""
raretok: four papers on rare tokens, from download to report.

    snakemake --cores all                                                   what config/config.yaml names
    snakemake --cores all stop_jostling                                     one paper
    snakemake --cores all results/smoke/tables/stop_jostling/table1.csv     one table
    snakemake --cores all results/smoke/figures/stop_jostling/figure3.svg   one figure

Stages, in order: data, tokenize, train, evaluate, report.
"""

import os
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.utils import min_version

min_version("9.0")


configfile: "config/config.yaml"


# Jobs call `python -m raretok`: the package of this checkout, installed or not, and the Python that runs
# Snakemake, its environment activated or not.
ROOT = Path(workflow.basedir)
PACKAGES = str(ROOT / "workflow")
sys.path.insert(0, PACKAGES)
os.environ["PYTHONPATH"] = os.pathsep.join(
    [PACKAGES, *filter(None, [os.environ.get("PYTHONPATH")])]
)
os.environ["PATH"] = os.pathsep.join(
    [str(Path(sys.executable).parent), os.environ["PATH"]]
)

from raretok import wiring
from raretok.errors import UserError

try:
    TABLE = wiring.load(config, ROOT)
except UserError as error:
    raise WorkflowError(str(error)) from None


wildcard_constraints:
    experiment=r"[A-Za-z0-9][A-Za-z0-9_.+-]*",
    method=r"[A-Za-z0-9][A-Za-z0-9_.+-]*",
    seed=r"\d+",
    paper=r"[a-z_]+",
    item=r"[a-z]+[0-9]+",


localrules:
    all,


rule all:
    """
    Every table, figure and claim of the papers in config/config.yaml, on one page
    """
    default_target: True
    input:
        f"results/{TABLE.scale}/report/index.html",


include: "workflow/rules/data.smk"
include: "workflow/rules/tokenize.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/report.smk"
