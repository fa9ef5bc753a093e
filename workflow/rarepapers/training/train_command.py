"""The command `train`: train one run, or continue it."""

import argparse
from pathlib import Path

from rarepapers.core.errors import NotFinite, UserError
from rarepapers.core.files import parse_json
from rarepapers.machine import gpu_locks
from rarepapers.machine.clock import log
from rarepapers.training.finished_files import adopt
from rarepapers.training.holder import only_one, remove_leftovers
from rarepapers.training.refusal import note_error, refuse_again


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument(
        "--run", required=True, help="the run as JSON, a line of `rarepapers runs --json`; @FILE reads it"
    )
    parser.add_argument("--manifest", type=Path, required=True, help="manifest.json of the prepared corpus")
    parser.add_argument("--output", type=Path, required=True, help="folder for the final files")
    parser.add_argument("--state", type=Path, required=True, help="folder for the state of an unfinished training")
    parser.add_argument(
        "--counts",
        nargs="?",
        type=Path,
        help="type counts of another text (.npy), if the output bias starts from them; may be empty",
    )
    parser.add_argument(
        "--same-as",
        nargs="*",
        default=[],
        type=Path,
        metavar="FILE",
        help="training.json of a finished run with the same weights, whose files are copied instead of training; "
        "further FILEs (its weights) are ignored",
    )
    gpu_locks.add_arguments(parser)
    parser.add_argument(
        "--checkpoint-seconds",
        type=float,
        default=60.0,
        help="seconds between two saves of the state (default: %(default)s)",
    )
    parser.add_argument("--checkpoint-steps", type=int, help="also save the state every this many steps")
    parser.add_argument(
        "--no-copy", action="store_true", help="keep no second copy of the final files, whose weights will be deleted"
    )
    parser.add_argument("--no-compile", action="store_true", help="train on a GPU without torch.compile")


def main(arguments: argparse.Namespace) -> None:
    """Train; see `rarepapers.training.loop.train` for the errors."""
    from rarepapers.data.prepared_corpus import load_manifest

    run = read_run(arguments.run)
    if arguments.same_as:
        record, *_ = arguments.same_as
        adopt(record, run, arguments.output, load_manifest(arguments.manifest))
        log(f"copied the files of {record.parent}, a training with the same settings")
        return

    from rarepapers.machine.device import choose_device
    from rarepapers.training.loop import Options, train

    options = Options(
        device=choose_device(arguments.device, arguments.runs_per_gpu),
        checkpoint_seconds=arguments.checkpoint_seconds,
        checkpoint_steps=arguments.checkpoint_steps,
        compile=not arguments.no_compile,
        keep_copy=not arguments.no_copy,
    )
    counts = None if arguments.counts is None else read_counts(arguments.counts)
    with only_one(arguments.state):
        remove_leftovers(arguments.state, arguments.output)
        refuse_again(arguments.state)
        try:
            train(run, load_manifest(arguments.manifest), arguments.output, arguments.state, options, counts)
        except NotFinite as error:
            note_error(arguments.state, error)
            raise


def read_run(text: str) -> dict:
    """The run in `--run`; raises UserError for invalid JSON or missing keys."""
    try:
        source = "--run"
        if text.startswith("@"):
            source = text[1:]
            text = Path(source).read_text(encoding="utf-8")
        run = parse_json(text, source)
        missing = {"experiment", "method", "seed", "hash", "settings"} - run.keys()
    except (OSError, ValueError, AttributeError) as error:
        raise UserError(f"--run is not a line of `rarepapers runs --json`: {error}") from None
    if missing:
        raise UserError(f"--run lacks {', '.join(sorted(missing))}; take a line of `rarepapers runs --json`")
    return run


def read_counts(path: Path):
    """The type counts in the file `path`, (V,) integers; raises UserError if it is invalid."""
    import numpy as np

    try:
        counts = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise UserError(f"{path}, the file of --counts, cannot be read ({error}); count the text again") from None
    if counts.ndim != 1 or counts.dtype.kind not in "iu" or (counts < 0).any():
        raise UserError(f"{path}, the file of --counts, does not hold one whole number for each type")
    return counts
