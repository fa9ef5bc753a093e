"""Preflight check that checks nothing, for benchmarks/jobs.py."""

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Accept any arguments."""
    parser.prefix_chars = "\0"
    parser.add_argument("anything", nargs="*")


def main(arguments: argparse.Namespace) -> None:
    """Nothing."""
