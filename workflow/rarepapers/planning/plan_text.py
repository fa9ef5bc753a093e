"""Text of the plan for a terminal, and the cost table of docs/cluster.md."""

from itertools import groupby

from rarepapers.data.catalogue import Wanted
from rarepapers.experiments.run_table import RUN_NAME, RunTable
from rarepapers.experiments.trained_runs import same_training
from rarepapers.machine.processor import processor_name
from rarepapers.planning.cost_estimate import RunCost, data_bytes, largest_gib
from rarepapers.planning.fetch import in_words
from rarepapers.planning.throughput import CPU, Machine

TOTAL = "all"


def grouped(costs: list[RunCost], title: str) -> dict[str, list[RunCost]]:
    """Costs by a `title` with fields of their runs, such as {paper}; costs of one title are neighbours."""
    return {name: list(own) for name, own in groupby(costs, key=lambda cost: title.format(**vars(cost.run)))}


def by_paper(costs: list[RunCost]) -> dict[str, list[RunCost]]:
    """Costs by paper, with the total last if there are several papers."""
    papers = grouped(costs, "{paper}")
    return papers | ({TOTAL: costs} if len(papers) > 1 else {})


def plan_rows(groups: dict[str, list[RunCost]], machines: list[Machine]) -> tuple[list[str], list[list[str]]]:
    """Header and rows: what, models, largest model, targets, hours per machine, peak memory, storage."""
    # A run takes about the same memory on every GPU.
    first = machines[0]
    heads = ["", "models", "parameters at most", "tokens", *(f"hours, {machine.name}" for machine in machines)]
    heads += ["peak GiB", "storage, GB"]
    rows = [
        [
            name,
            str(len(costs)),
            in_thousands(max(cost.parameters for cost in costs)),
            in_thousands(sum(cost.tokens for cost in costs)),
            *(short(sum(cost.seconds(machine) for cost in costs) / 3600) for machine in machines),
            "?" if (peak := largest_gib(costs, first)) is None else short(peak),
            short(sum(cost.bytes for cost in costs) / 1e9),
        ]
        for name, costs in groups.items()
    ]
    return heads, rows


def in_thousands(number: int) -> str:
    """A count in words."""
    for unit, size in (("B", 10**9), ("M", 10**6), ("k", 10**3)):
        if number >= size:
            return f"{number / size:,.1f} {unit}"
    return str(number)


def short(value: float) -> str:
    """A number rounded to two digits, the precision of an estimate."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def text_table(heads: list[str], rows: list[list[str]]) -> list[str]:
    """A table for the terminal; all columns but the first are aligned to the right."""
    columns = list(zip(heads, *rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    padded = [
        [cell.rjust(width) if number else cell.ljust(width) for cell in column]
        for number, (column, width) in enumerate(zip(columns, widths, strict=True))
    ]
    return ["  ".join(row).rstrip() for row in zip(*padded, strict=True)]


def markdown(heads: list[str], rows: list[list[str]]) -> list[str]:
    """A table in Markdown."""
    lines = [heads, ["---"] + ["---:"] * (len(heads) - 1), *rows]
    return [f"| {' | '.join(line)} |" for line in lines]


def hours_notes(machines: list[Machine]) -> list[str]:
    """Notes on the hours: what they include, and how they are estimated."""
    lines = [
        "Hours are for training on one device, without evaluation. On CPUs they are CPU time, with validation. On "
        "GPUs they leave out validation, which takes longest where it decodes translations by beam search.",
        "They are scaled from the measured model with the most similar number of operations, in proportion. A small "
        "model alone on a GPU takes longer, because it waits for kernels to be launched.",
    ]
    for machine in machines:
        if machine.than:
            lines.append(f"{machine.name}: not measured; {machine.slower:g} times {machine.than}'s ({machine.source}).")
        else:
            lines.append(f"{machine.name}: {len(machine.rows)} measured rows in config/throughput.yaml.")
        if machine.name == CPU:
            lines.append(f"{machine.name}: {precision_note(machine)}")
    return lines


def precision_note(machine: Machine) -> str:
    """The precision of trainings in bfloat16 on this processor, and what it costs."""
    asked = f"runs with training.precision bfloat16 train in {machine.precision} on this processor, {processor_name()}"
    if machine.has_bfloat16:
        return f"{asked}."
    return f"{asked}, which lacks bfloat16, and take {machine.float32:g} times as long as measured."


def summary(table: RunTable, costs: list[RunCost], files: list[Wanted], machines: list[Machine]) -> list[str]:
    """The plan by paper for a terminal. files: files to download."""
    seeds = ", ".join(map(str, table.seeds))
    copies = sum(same_training(table, run) is not None for run in table.runs.values())
    lines = [
        f"Scale {table.scale} ({table.scale_settings['title']}), seeds {seeds}: "
        f"{len(costs)} of {len(table.runs)} models to train" + (f", {copies} are copies" if copies else "")
    ]
    if costs:
        lines += ["", *text_table(*plan_rows(by_paper(costs), machines)), ""]
    state = max((cost.state for cost in costs), default=0)
    weights = "with" if table.config["keep_weights"] else "without"
    return [
        *lines,
        f"Storage: {in_words(sum(cost.bytes for cost in costs))} of results {weights} weights, about "
        f"{in_words(data_bytes(files))} of texts and tokens, and up to {in_words(state)} for each run in training.",
    ]


def plan_details(costs: list[RunCost], machines: list[Machine]) -> list[str]:
    """Cost of each run, after the notes on the hours."""
    table = text_table(*plan_rows(grouped(costs, RUN_NAME), machines)) if costs else []
    return [*hours_notes(machines), "", *table]


def default_machines(machines: dict[str, Machine]) -> list[Machine]:
    """All GPUs."""
    return [machine for name, machine in machines.items() if name != CPU]
