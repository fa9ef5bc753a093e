"""A check before the start that finds nothing wrong, for benchmarks/jobs.py."""

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Whatever the command is given."""
    parser.prefix_chars = "\0"
    parser.add_argument("anything", nargs="*")


def main(arguments: argparse.Namespace) -> None:
    """Nothing."""
