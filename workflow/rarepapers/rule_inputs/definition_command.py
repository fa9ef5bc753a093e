"""The command `definition`: writes the config of a paper as the reporting commands read it."""

import argparse
from pathlib import Path

from rarepapers.core.files import write_json
from rarepapers.experiments import config_options
from rarepapers.experiments.run_table import load
from rarepapers.rule_inputs.report import definition


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    config_options.add_arguments(parser)
    parser.add_argument("--paper", required=True, help="the paper")
    parser.add_argument("--output", required=True, type=Path, help="the JSON to write")


def main(arguments: argparse.Namespace) -> None:
    """Write the definition; raises UserError for a mistake in the config."""
    arguments.papers = [arguments.paper]
    table = load(config_options.config_of(arguments), arguments.root, arguments.project)
    write_json(arguments.output, definition(table, arguments.paper))
