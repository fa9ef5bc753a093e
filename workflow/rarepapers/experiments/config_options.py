"""Command-line options for the choices of config/config.yaml, for commands that users call without Snakemake."""

import argparse
from pathlib import Path

from rarepapers.core.config_files import read_config
from rarepapers.core.errors import UserError
from rarepapers.experiments.config_types import Choices

# Options named like their keys in config.yaml.
KEYS = ("scale", "seeds", "papers")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options that `config_of` reads."""
    parser.add_argument("--scale", help="a file of config/scales, such as small (default: from config.yaml)")
    parser.add_argument("--seeds", type=int, help="number of seeds (default: from the config)")
    parser.add_argument("--papers", nargs="+", help="ids of papers (default: from config.yaml)")
    parser.add_argument("--config", nargs="*", default=[], metavar="KEY=VALUE", help="overrides, as for Snakemake")
    parser.add_argument("--root", type=Path, default=Path(), help="folder of results/ and resources/ (default: here)")
    parser.add_argument("--project", type=Path, help="the project's folder, with config/ (default: that of --root)")


def config_of(arguments: argparse.Namespace) -> dict:
    """The values of config.yaml overlaid with the options; raises UserError for a mistake in either."""
    folder = (getattr(arguments, "project", None) or arguments.root) / "config"
    config = read_config(folder / "config.yaml", Choices)
    for choice in arguments.config:
        key, given, value = choice.partition("=")
        if not given:
            raise UserError(f"--config takes KEY=VALUE, not {choice!r}")
        config[key] = value
    return config | {key: getattr(arguments, key) for key in KEYS if getattr(arguments, key) is not None}
