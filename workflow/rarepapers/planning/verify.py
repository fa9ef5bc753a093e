"""The command `verify`: trains the runs of one claim with a new seed, and compares the result with the recorded one.

Snakemake makes these runs like all others: they lie in results/<scale>/runs, interrupted ones continue, and finished
ones are not repeated.
"""

import argparse
import subprocess
import sys
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from rarepapers.core.errors import UserError
from rarepapers.core.files import read_json
from rarepapers.experiments.run_table import RUN_NAME, RunTable, load_to_train, paper_ids
from rarepapers.machine.processor import processor_name
from rarepapers.planning import throughput
from rarepapers.planning.local_device import load_local
from rarepapers.reporting.claims.claim_parts import Part, in_unit
from rarepapers.reporting.claims.claim_runs import Price, RunName, Trained, finished_seeds
from rarepapers.reporting.claims.claim_text import number
from rarepapers.reporting.claims.claims_command import EXPERIMENT, evidence_of, finding_of, findings
from rarepapers.reporting.claims.deciding import trainings_of
from rarepapers.reporting.claims.verdicts import Finding
from rarepapers.reporting.collect import collect
from rarepapers.reporting.definition import definition_of
from rarepapers.reporting.recorded_precision import machine_of, precisions
from rarepapers.reporting.results import Results, index_results, read_results
from rarepapers.rule_inputs import report

INSIDE, OUTSIDE = "inside", "outside"


@dataclass(frozen=True)
class Recorded:
    """A recorded claim: its row of claims.csv, its finding, the trainings that it compares, and all results."""

    claim: object
    finding: Finding
    trainings: tuple[Trained, ...]
    results: Results


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("claim", metavar="CLAIM", help="a claim's id, such as stop_jostling.t1.se_acc")
    parser.add_argument("--seed", type=int, help="the seed to train with (default: the first that was not recorded)")
    parser.add_argument("--scale", default="small", help="a scale with recorded results (default: %(default)s)")
    parser.add_argument("--cores", default="all", help="cores for Snakemake (default: all)")
    parser.add_argument("--config", nargs="*", default=[], metavar="KEY=VALUE", help="config values for Snakemake")
    parser.add_argument("--dry-run", action="store_true", help="only print the runs and their cost")
    parser.add_argument("--root", type=Path, default=Path(), help="the project's folder (default: here)")


def main(arguments: argparse.Namespace) -> None:
    """Retrain and compare."""
    arguments.papers = arguments.seeds = None
    paper = arguments.claim.partition(".")[0]
    recorded = read_recorded(table_of(arguments, paper, recorded=True), paper, arguments.claim)
    if not recorded.trainings:
        print("\n".join(settled_claim(recorded)))
        return
    seed = arguments.seed if arguments.seed is not None else new_seed(recorded)
    table = table_of(arguments, paper, seeds=[seed], finished=False)
    runs = [(*training, seed) for training in recorded.trainings]
    for run in runs:
        table.run(*run)  # raises UserError if the config no longer has the method
    print("\n".join(announcement(recorded, runs, table)), flush=True)
    if arguments.dry_run:
        return
    make_runs(command(runs, table, arguments.config, arguments.cores), arguments.root)
    print("\n".join(compared(recorded, measure_claim(recorded.claim, runs, table), seed)))
    print("\n".join(machines_compared(recorded, [read_json(path)["training"] for path in metrics_of(runs, table)])))


def table_of(arguments: argparse.Namespace, paper: str, **choice) -> RunTable:
    """The run table of one paper."""
    papers = sorted(paper_ids(arguments.root))
    if paper not in papers:
        raise UserError(
            f"there is no claim {arguments.claim}: an id begins with its paper ({', '.join(papers)}) and a full stop; "
            "config/papers/*/claims.csv have them all"
        )
    return load_to_train(arguments, papers=[paper], **choice)


def read_recorded(table: RunTable, paper: str, name: str) -> Recorded:
    """The record of a claim; `trainings` is empty if the claim is not about an experiment.

    Raises UserError for an unknown claim, or one that no run of this scale decides.
    """
    definition = definition_of(report.definition(table, paper))
    results = read_results(table.root / table.results)
    found = findings(definition, results, table.project / "config" / "papers")
    claims = {claim.id: (claim, finding) for claim, finding in found}
    if name not in claims:
        names = {claim.removeprefix(f"{paper}."): claim for claim in claims}
        near = get_close_matches(name.removeprefix(f"{paper}."), names, cutoff=0.7)
        meant = f"did you mean {' or '.join(names[rest] for rest in near)}? " if near else ""
        raise UserError(f"there is no claim {name}; {meant}config/papers/{paper}/claims.csv has them all")
    claim, finding = claims[name]
    trainings = trainings_of(claim, finding, {other.id: other for other, _ in found}, definition)
    if claim.kind == EXPERIMENT and not claim.direction:
        raise UserError(f"{name} claims nothing that runs could decide: {claim.sentence}")
    if claim.kind == EXPERIMENT and not trainings:
        raise UserError(f"no run of scale {table.scale} decides {name}: {finding.note or finding.verdict}")
    return Recorded(claim, finding, trainings, results)


def new_seed(recorded: Recorded) -> int:
    """The smallest seed that none of a claim's recorded trainings has."""
    finished = finished_seeds(recorded.results)
    used = set().union(*(finished.get(training, set()) for training in recorded.trainings))
    return next(seed for seed in range(1, len(used) + 2) if seed not in used)


def command(runs: list[RunName], table: RunTable, config: list[str], cores: int | str) -> list[str]:
    """The command that makes some runs, as words; it lists their seeds, which the scale may lack. config: KEY=VALUE."""
    seeds = ",".join(map(str, sorted({seed for *_, seed in runs})))
    chosen = [*config, f"scale={table.scale}", f"seeds=[{seeds}]"]
    targets = (f"results/{table.scale}/runs/{table.run(*run).name}/metrics.json" for run in runs)
    return ["snakemake", "--cores", str(cores), "--config", *chosen, "--", *targets]


def make_runs(words: list[str], root: Path) -> None:
    """Make the runs with Snakemake; raises UserError if it fails; finished runs are kept."""
    # The Snakemake of another environment would make jobs import another raretok than this checkout's.
    process = subprocess.Popen([sys.executable, "-m", *words], cwd=root)
    status = None
    while status is None:
        try:
            status = process.wait()
        except KeyboardInterrupt:
            # Snakemake has received the signal too: it stops its jobs, which save their state, and unlocks the folder.
            print("waiting for the runs to save their state", file=sys.stderr)
    if status:
        raise UserError("the runs did not finish (see above); finished work is kept, and the same command continues")


def metrics_of(runs: list[RunName], table: RunTable) -> list[Path]:
    """The files with the metrics of new runs."""
    return [table.root / table.folder(table.run(*run)) / "metrics.json" for run in runs]


def measure_claim(claim, runs: list[RunName], table: RunTable) -> tuple[Part, ...]:
    """The comparisons of a claim on these runs alone; raises UserError if they do not measure it."""
    definition = definition_of(report.definition(table, claim.paper))
    folder = table.root / table.results
    results = index_results(folder, collect(metrics_of(runs, table)))
    evidence = evidence_of(definition, results, table.project / "config" / "papers")
    finding = finding_of(claim, evidence)
    if not finding.parts:
        raise UserError(f"the new runs do not measure {claim.id}: {finding.note}")
    return finding.parts


def settled_claim(recorded: Recorded) -> list[str]:
    """Lines on a claim that is not an experiment, recomputed."""
    kind = recorded.claim.kind.replace("_", " ")
    return [
        f"{recorded.claim.id}: {recorded.claim.sentence} ({recorded.finding.verdict})",
        f"{kind}, computed again without training: {recorded.finding.note}",
    ]


def announcement(recorded: Recorded, runs: list[RunName], table: RunTable) -> list[str]:
    """Lines on the claim and the runs that it needs, with their estimated cost on this processor."""
    machine = load_local(table.project)[throughput.CPU]
    cost = Price(sum(machine.training_seconds(table.run(*run).settings) for run in runs) / 60).in_words()
    names = [f"  {experiment}/{method}/seed{seed}" for experiment, method, seed in runs]
    before = records_of(recorded)
    if before:
        names.append(f"Recorded in {_in_words(before)}.")
    if any(machine.slowdown(table.run(*run).settings) != 1 for run in runs):
        names.append(
            f"This processor, {processor_name()}, lacks bfloat16: its CPU would train in {machine.precision}, which "
            f"takes about {machine.float32:g} times as long, and compare across precisions."
        )
    if not recorded.finding.parts:
        names.append("No result of this claim is recorded: there is no interval to compare the new one with.")
    return [
        f"{recorded.claim.id}: {recorded.claim.sentence} ({recorded.finding.verdict})",
        f"{len(runs)} run{'s' * (len(runs) > 1)} at scale {table.scale}, {cost}:",
        *names,
    ]


def records_of(recorded: Recorded) -> list[dict]:
    """The records of a claim's recorded trainings."""
    results = recorded.results
    runs = sorted(run for run in results.runs if run[:2] in set(recorded.trainings))
    names = (RUN_NAME.format(experiment=experiment, method=method, seed=seed) for experiment, method, seed in runs)
    paths = (results.folder / "runs" / name / "metrics.json" for name in names)
    return [read_json(path)["training"] for path in paths if path.exists()]


def machines_compared(recorded: Recorded, new: list[dict]) -> list[str]:
    """Precision and machine of the recorded and of the new trainings, and whether precisions differ."""
    before = records_of(recorded)
    lines = [f"new runs: {_in_words(new)}; recorded: {_in_words(before) if before else 'none'}."]
    if before and precisions(before) != precisions(new):
        lines.append(
            "This compares across precisions: rounding is part of the difference, and the interval does not include it."
        )
    return lines


def _in_words(trainings: list[dict]) -> str:
    return ", ".join(sorted({machine_of(training) for training in trainings}))


def compared(recorded: Recorded, parts: tuple[Part, ...], seed: int) -> list[str]:
    """The new result of each comparison beside the recorded value and its prediction interval."""
    claim, unit = recorded.claim, recorded.claim.unit
    before = {part.label: part for part in recorded.finding.parts}
    lines, places = [], []
    for part in parts:
        value = number(in_unit(part.estimate.mean, part.log), unit)
        way = "the paper's way" if part.slack > 0 else "against it" if part.slack < 0 else "neither way"
        old = before.get(part.label)
        said = [f"seed {seed}: {value}, {way}"] if part.bounds else [f"seed {seed}: {value}"]
        if old is None:
            said.append("not recorded")
        else:
            seeds = old.estimate.seeds
            said.append(
                f"recorded {number(in_unit(old.estimate.mean, old.log), unit)}, {seeds} seed{'s' * (seeds > 1)}"
            )
            low, high = old.estimate.prediction()
            if low is None:
                said.append("no prediction interval: the spread over seeds is unknown")
            else:
                places.append(INSIDE if low <= part.estimate.mean <= high else OUTSIDE)
                ends = (number(in_unit(end, old.log), "") for end in (low, high))
                said.append(f"{places[-1]} the 95% prediction interval of one new seed, {' to '.join(ends)}")
        label = part.label or (claim.sentence if claim.measured_by == "table" else claim.quantity)
        lines += [f"{label}:", *(f"  {line}" for line in said)]
    if places:
        inside = places.count(INSIDE)
        lines.append(f"{inside} of {len(places)} inside; one in twenty lies outside a correct 95% interval.")
    return lines
