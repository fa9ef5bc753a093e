"""The command `preflight`: checks devices, disk and data before long jobs, and prints the plan.

The workflow calls it when it starts with runs to train (workflow_start.py), and so does rule `preflight`. It writes the
full plan to results/<scale>/plan.txt.
"""

import argparse
import os
import shutil
from pathlib import Path

from rarepapers.core.errors import UserError
from rarepapers.core.files import write_text
from rarepapers.data.catalogue import Wanted, find_file
from rarepapers.data.download.download_command import in_mirror, published_path
from rarepapers.experiments import config_options
from rarepapers.experiments.run_table import RunTable, load_to_train
from rarepapers.experiments.trained_runs import is_trained
from rarepapers.planning.cost_estimate import RunCost, costs_of, data_bytes, largest_gib
from rarepapers.planning.local_device import find_device, load_local
from rarepapers.planning.plan_text import default_machines, plan_details, summary
from rarepapers.rule_inputs.required_files import files_of, is_here, needed_files

CACHE = Path("resources/cache")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    config_options.add_arguments(parser)
    parser.add_argument(
        "--only", nargs="*", help="runs to train, as EXPERIMENT/METHOD/seedN (default: all unfinished ones)"
    )
    parser.add_argument("--files", nargs="*", help="files to get, as DATASET/FILE (default: those that are missing)")
    parser.add_argument("--elsewhere", action="store_true", help="jobs run on other machines: do not check the device")
    parser.add_argument("--output", type=Path, help="where to write the plan (default: results/<scale>/plan.txt)")


def main(arguments: argparse.Namespace) -> None:
    """Check and print; raises UserError if something would fail."""
    table = load_to_train(arguments)
    for name in arguments.only or ():
        table.named(name)  # raises UserError if there is no such run
    costs = [cost for cost in costs_of(table) if _is_due(cost, table, arguments)]
    files = _files(table, costs, arguments)
    known = load_local(table.project)
    said, machine, memory = "not checked: jobs run elsewhere", None, None
    if not arguments.elsewhere:
        said, machine, memory = find_device(table.config["device"], known)
    machines = [known[machine]] if machine else default_machines(known)
    lines = summary(table, costs, files, machines)
    lines += [f"Device: {said}"]
    largest = largest_gib(costs, machines[0])
    if memory and largest and largest > memory:
        lines += [f"Warning: the largest model is estimated to take {largest:.0f} GiB of the device's {memory:.0f}."]
    lines += [check_disk(table, costs, files), check_data(table, files)]
    output = arguments.output or table.root / table.results / "plan.txt"
    write_text(output, "\n".join([*lines, "", *plan_details(costs, machines)]) + "\n")
    print("\n".join([*lines, f"Cost of each run, and how it is estimated: {output}"]))


def _is_due(cost: RunCost, table: RunTable, arguments: argparse.Namespace) -> bool:
    if arguments.only is not None:
        return cost.run.name in arguments.only
    return not is_trained(table, cost.run)


def _files(table: RunTable, costs: list[RunCost], arguments: argparse.Namespace) -> list[Wanted]:
    """The files to download."""
    if arguments.files is not None:
        split = (name.partition("/") for name in arguments.files)
        return [find_file(table.datasets, dataset, file) for dataset, _, file in split]
    runs = [cost.run for cost in costs]
    wanted = needed_files(table, runs) if arguments.only is None else files_of(table, runs)
    return [one for one in wanted if not is_here(table, one)]


def check_disk(table: RunTable, costs: list[RunCost], files: list[Wanted]) -> str:
    """Free disk space compared with the estimate; raises UserError if it is too small."""
    results, resources = (_existing(table.root / name) for name in (table.results, "resources"))
    # New files replace existing ones.
    new = (cost.bytes - size_of_folder(table.root / table.folder(cost.run)) for cost in costs)
    kept = sum(max(0, size) for size in new) + max((cost.state for cost in costs), default=0)
    texts = data_bytes(files)
    if os.stat(results).st_dev == os.stat(resources).st_dev:
        needs = {results: kept + texts}
    else:
        needs = {results: kept, resources: texts}
    said = []
    for folder, needed in needs.items():
        free = shutil.disk_usage(folder).free
        if free < needed:
            raise UserError(
                f"the disk of {folder} has {free / 1e9:.1f} GB free, and about {needed / 1e9:.1f} GB are needed; make "
                "room, put results/ and resources/ on another disk by links, or choose fewer papers or seeds"
            )
        said.append(f"{folder} {free / 1e9:,.1f} GB free, about {needed / 1e9:.2g} GB needed")
    return f"Disk: {'; '.join(said)}"


def size_of_folder(folder: Path) -> int:
    """Bytes of the files in a folder; 0 if it does not exist."""
    return sum(path.stat().st_size for path in folder.glob("*") if path.is_file())


def _existing(path: Path) -> Path:
    """The folder, or its nearest existing parent."""
    path = path.resolve()
    return next(folder for folder in (path, *path.parents) if folder.is_dir())


def check_data(table: RunTable, files: list[Wanted]) -> str:
    """Whether every file can be obtained, without downloading; raises UserError if one cannot."""
    mirror = table.config["data_mirror"]
    if mirror:
        missing = [wanted for wanted in files if in_mirror(wanted, Path(mirror))[0] is None]
        if missing:
            raise UserError(
                f"the data mirror {mirror} lacks {len(missing)} of {len(files)} files, such as {missing[0].name} of "
                f"{missing[0].dataset}; fill it with `make fetch SCALE={table.scale} MIRROR={mirror}` where there is a "
                "network, or leave out what needs them"
            )
        return f"Data: in {mirror}, files: {len(files)}" if files else "Data: all there"
    for wanted in files:
        cached = published_path(wanted, table.root / CACHE)
        if not wanted.file.urls and not cached.exists():
            raise UserError(
                f"{wanted.file.path} of {wanted.dataset} cannot be downloaded: {wanted.file.manual}; then put it at "
                f"{cached}, or leave out what needs it"
            )
    return f"Data: to download, files: {len(files)}" if files else "Data: all there"
