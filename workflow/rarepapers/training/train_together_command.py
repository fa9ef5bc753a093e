"""The command `train-together`: train several runs of one shape in one job."""

import argparse
from contextlib import ExitStack
from pathlib import Path

from rarepapers.training.holder import only_one
from rarepapers.training.train_command import add_option_arguments


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument(
        "--runs", required=True, help="@FILE with lines of `rarepapers runs --json` that differ only in seed and method"
    )
    parser.add_argument("--manifest", type=Path, required=True, help="manifest.json of the prepared corpus")
    parser.add_argument("--results", type=Path, required=True, help="folder of the results, with runs/ and state/")
    add_option_arguments(parser)


def main(arguments: argparse.Namespace) -> None:
    """Train; see `rarepapers.training.joint_loop.train_together` for the errors."""
    from rarepapers.data.prepared_corpus import load_manifest
    from rarepapers.experiments.joint_runs import read_joint_runs
    from rarepapers.machine.device import choose_device
    from rarepapers.training.joint_loop import JointFolders, train_together
    from rarepapers.training.loop import Options

    stack = read_joint_runs(arguments.runs)
    folders = JointFolders(arguments.results, stack)
    options = Options(
        device=choose_device(arguments.device, arguments.runs_per_gpu),
        checkpoint_seconds=arguments.checkpoint_seconds,
        checkpoint_steps=arguments.checkpoint_steps,
    )
    with ExitStack() as locks:
        for folder in (folders.together, *folders.states):
            locks.enter_context(only_one(folder))
        train_together(stack, load_manifest(arguments.manifest), folders, options)
