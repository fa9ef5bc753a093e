"""Queue of runs for `plan --claims`, ordered by how soon they decide claims."""

import json
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from rarepapers.core.errors import UserError
from rarepapers.experiments.run_table import RUN_NAME, RunTable
from rarepapers.experiments.seeds import seed_ranges
from rarepapers.planning.cost_estimate import costs_of
from rarepapers.planning.plan_text import short, text_table
from rarepapers.planning.throughput import Machine
from rarepapers.reporting.claims.claim_runs import Price, Prices, RunName, measured_prices, price_of
from rarepapers.reporting.claims.claims_command import family_size, findings
from rarepapers.reporting.claims.deciding import Decision, decisions
from rarepapers.reporting.definition import definition_of
from rarepapers.reporting.results import Results
from rarepapers.rule_inputs import report

# Weight of a claim that runs bring nearer to a verdict, relative to one that they decide: our choice, which only orders
# the queue.
BEGUN = 0.1
HEADS = ["step", "runs", "cost", "hours so far", "decided", "begun", "per hour", "claims"]
NUMBERS = ("step", "hours so far", "decided", "begun", "per hour")


@dataclass(frozen=True)
class Step:
    """Runs that belong together, the claims that they decide, and the claims that they bring nearer to a verdict.

    price: of these runs, which no earlier step has; None if unknown.
    """

    runs: tuple[RunName, ...]
    decides: tuple[str, ...]
    begins: tuple[str, ...]
    price: Price | None

    @property
    def per_hour(self) -> float | None:
        """Decided claims per hour of a core or GPU; a claim begun counts as BEGUN."""
        worth = len(self.decides) + BEGUN * len(self.begins)
        return worth * 60 / max(self.price.minutes, 1e-9) if self.price else None


def results_folder(table: RunTable, named: Path | None) -> Path:
    """Folder of the results to plan from: `named`, else the scale's, else recorded ones; UserError if none exist."""
    folders = [named] if named else [table.root / table.results, table.root / f"results/recorded/{table.scale}"]
    for folder in folders:
        if (folder / "metrics.csv").exists():
            return folder
    raise UserError(f"no metrics.csv lies in {' or '.join(map(str, folders))}; --results names a folder of results")


def prices_of(table: RunTable, results: Results, machine: Machine) -> Prices:
    """Prices of runs: as recorded, else as `plan` estimates them for `machine`, on one core.

    Recorded core times in bfloat16 are corrected for a machine without it.
    """
    measured = measured_prices(results)
    slower = {(run.experiment, run.method): machine.slowdown(run.settings) for run in table.runs.values()}
    estimated = {(cost.run.experiment, cost.run.method): Price(cost.seconds(machine) / 60) for cost in costs_of(table)}

    def price(experiment: str, method: str) -> Price | None:
        known = measured(experiment, method)
        if known and known.unit == Price.unit:
            known = replace(known, minutes=known.minutes * slower.get((experiment, method), 1.0))
        return known or estimated.get((experiment, method))

    return price


def needed_by_claims(table: RunTable, results: Results, prices: Prices) -> dict[str, Decision]:
    """What would decide each undecided claim of the table's papers, by the claim's id."""
    needed = {}
    for paper in table.papers:
        definition = definition_of(report.definition(table, paper))
        if not definition.printed:
            continue
        found = findings(definition, results, table.project / "config" / "papers")
        sizes = family_size([claim for claim, _ in found], definition)
        for (claim, _), decision in zip(found, decisions(found, sizes, definition, results, prices), strict=True):
            if decision.runs:
                needed[claim.id] = decision
    return needed


def queue(needed: dict[str, Decision], prices: Prices) -> list[Step]:
    """All runs that claims need, each once, in the order of decided claims per hour.

    Each step takes the missing runs of one claim: the one that decides the most claims per hour, counting all claims
    that then need no further runs. The order is greedy, because the best one is at least as hard to find as the
    solution of a knapsack problem.
    """
    steps, made, waiting = [], set(), {name: set(decision.runs) for name, decision in needed.items()}
    while waiting:
        options = [_step(runs - made, needed, waiting, made, prices) for runs in waiting.values()]
        best = max(options, key=lambda step: (step.per_hour or 0.0, -len(step.runs)))
        for name in (*best.decides, *best.begins):
            del waiting[name]
        made |= set(best.runs)
        steps.append(best)
    return steps


def _step(runs: set[RunName], needed: dict[str, Decision], waiting: dict[str, set], made: set, prices: Prices) -> Step:
    """The claims completed by `runs`, given the runs that are made."""
    complete = [name for name, wanted in waiting.items() if wanted <= runs | made]
    decides = tuple(name for name in complete if needed[name].sure)
    begins = tuple(name for name in complete if not needed[name].sure)
    return Step(tuple(sorted(runs)), decides, begins, price_of(sorted(runs), prices))


def lines_of(steps: list[Step], table: RunTable) -> list[str]:
    """Lines for the terminal: the queue, and the command for its first step."""
    if not steps:
        return ["No run would decide a claim: all are decided, or need runs that this scale leaves out."]
    rows, spent = [], 0.0
    for number, step in enumerate(steps, 1):
        spent += step.price.minutes if step.price else 0.0
        claims = step.decides + step.begins
        cells = [
            number,
            _in_short(step.runs),
            step.price.in_words() if step.price else "?",
            short(spent / 60),
            len(step.decides),
            len(step.begins),
            "?" if step.per_hour is None else short(step.per_hour),
            ", ".join(claims[:3]) + (f" and {len(claims) - 3} more" if len(claims) > 3 else ""),
        ]
        rows.append(list(map(str, cells)))
    return [
        *text_table(HEADS, rows, right=NUMBERS),
        "",
        "decided: claims that these runs decide with power 0.8, if effects and spreads are those observed so far.",
        "begun: claims that need a first run, or a second seed that shows how far seeds differ.",
        f"per hour: claims decided, and {BEGUN:g} for each begun.",
        "",
        f"Start with: {shlex.join(command(steps[0].runs, table))}",
    ]


def as_json(steps: list[Step], table: RunTable) -> str:
    """The queue as JSON: a list of runs in order, each with its Snakemake target and the claims of its step."""
    entries = [
        {
            "step": number,
            "experiment": experiment,
            "method": method,
            "seed": seed,
            "target": _target((experiment, method, seed), table),
            "decides": list(step.decides),
            "begins": list(step.begins),
            "step_minutes": step.price.minutes if step.price else None,
            "unit": step.price.unit if step.price else "core",
        }
        for number, step in enumerate(steps, 1)
        for experiment, method, seed in step.runs
    ]
    return json.dumps(entries, indent=1)


def command(
    runs: Iterable[RunName], table: RunTable, config: Iterable[str] = (), cores: int | str = "all"
) -> list[str]:
    """The command that makes some runs, as words; it lists their seeds, which the scale may lack. config: KEY=VALUE."""
    runs = list(runs)
    seeds = ",".join(map(str, sorted({seed for *_, seed in runs})))
    chosen = [*config, f"scale={table.scale}", f"seeds=[{seeds}]"]
    return ["snakemake", "--cores", str(cores), "--config", *chosen, "--", *(_target(run, table) for run in runs)]


def _target(run: RunName, table: RunTable) -> str:
    experiment, method, seed = run
    name = RUN_NAME.format(experiment=experiment, method=method, seed=seed)
    return f"results/{table.scale}/runs/{name}/metrics.json"


def _in_short(runs: tuple[RunName, ...]) -> str:
    """The first runs as text, by method with their seeds: shakespeare/baseline 2, 4-6."""
    seeds: dict[tuple[str, str], list[int]] = {}
    for experiment, method, seed in runs:
        seeds.setdefault((experiment, method), []).append(seed)
    words = [f"{experiment}/{method} {seed_ranges(each)}" for (experiment, method), each in seeds.items()]
    return "; ".join(words[:3]) + (f"; {len(words) - 3} more methods" if len(words) > 3 else "")
