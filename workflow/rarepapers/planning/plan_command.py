"""The command `plan`: estimated cost of the runs of a config."""

import argparse
import json
from pathlib import Path

from rarepapers.experiments import config_options
from rarepapers.experiments.run_table import load_to_train
from rarepapers.planning import plan_text
from rarepapers.planning import throughput as speeds
from rarepapers.planning.cost_estimate import costs_of
from rarepapers.planning.local_device import load_local
from rarepapers.rule_inputs.required_files import needed_files


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    config_options.add_arguments(parser)
    parser.add_argument("--device", nargs="+", help="machines of config/throughput.yaml (default: every GPU in it)")
    parser.add_argument("--runs", action="store_true", help="also one line per run")
    parser.add_argument("--markdown", action="store_true", help="the cost table of docs/cluster.md")
    parser.add_argument(
        "--measured", type=Path, metavar="FOLDER", help="rows for config/throughput.yaml from finished runs"
    )


def main(arguments: argparse.Namespace) -> None:
    """Print the plan, or measured rows."""
    if arguments.measured:
        print("\n".join(f"  - {json.dumps(row)}" for row in speeds.rows_of(arguments.measured)))
        return
    table = load_to_train(arguments)
    known = load_local(table.project)
    machines = [speeds.find(known, name) for name in arguments.device or ()] or plan_text.default_machines(known)
    costs = costs_of(table)
    if arguments.markdown:
        print("\n".join(cost_tables(costs, machines)))
        return
    lines = plan_text.summary(table, costs, needed_files(table), machines)
    lines += plan_text.plan_details(costs, machines) if arguments.runs else plan_text.hours_notes(machines)
    print("\n".join(lines))


def cost_tables(costs, machines) -> list[str]:
    """Markdown: a table by paper, one by experiment, and notes."""
    return [
        *plan_text.markdown(*plan_text.plan_rows(plan_text.by_paper(costs), machines)),
        "",
        *plan_text.markdown(*plan_text.plan_rows(plan_text.grouped(costs, "{paper}: {experiment}"), machines)),
        "",
        *(f"- {note}" for note in plan_text.hours_notes(machines)),
    ]
