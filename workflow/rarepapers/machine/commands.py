"""The commands, of users and of the rules: `python -m rarepapers COMMAND --help`.

Each command is a module with `add_arguments(parser)` and `main(arguments)`. A module is imported only when its command
is called, so that rendering a table does not import torch.
"""

import argparse
import errno
import importlib
import signal
import sys
from collections.abc import Callable

from rarepapers.core.errors import EXIT_INTERRUPTED, EXIT_USER_ERROR, Interrupted, UserError
from rarepapers.machine.slurm import DONE, FAILED, name_node, queue_again
from raretok import __version__

# command: (module, help)
FOR_USERS = {
    "plan": ("rarepapers.planning.plan_command", "estimate the cost of the runs of the config: hours, memory, storage"),
    "runs": ("rarepapers.experiments.run_table", "print the run table of the config, one run per line"),
    "fetch": ("rarepapers.planning.fetch", "fill a data mirror with the files that the runs of the config need"),
    "status": ("rarepapers.planning.status_command", "show running jobs, failures and their reasons, and what is left"),
    "accept": ("rarepapers.rule_inputs.accept", "accept finished results from another machine if nothing has changed"),
    "verify": ("rarepapers.planning.verify", "retrain what one claim needs, and compare with the recorded result"),
    "record": ("rarepapers.reporting.record", "copy the files of a scale's report to results/recorded"),
    "readme": (
        "rarepapers.reporting.page.readme_command",
        "write the main numbers of the recorded results into the README",
    ),
}
FOR_RULES = {
    "download": (
        "rarepapers.data.download.download_command",
        "get one file of a data set from its URLs or a data mirror, and verify it",
    ),
    "synthesise": ("rarepapers.data.synthetic.synthesise_command", "make the seeded text of a synthetic corpus"),
    "prepare": ("rarepapers.data.characters.prepare", "turn a corpus of characters into ids, counts and a manifest"),
    "encode": (
        "rarepapers.data.text.encode_text",
        "turn a language's splits into token ids, counts and a manifest",
    ),
    "encode-pairs": (
        "rarepapers.data.pairs.encode_pairs",
        "turn a parallel text into ids of both sides, counts and a manifest",
    ),
    "reverse-pairs": ("rarepapers.data.pairs.reverse_pairs", "swap the sides of a prepared translation corpus"),
    "count-unigrams": (
        "rarepapers.data.pairs.count_unigrams",
        "count the types of a corpus in a shard of another text",
    ),
    "merge-counts": ("rarepapers.data.pairs.merge_counts", "add up the counts of shards"),
    "align": ("rarepapers.data.alignment.align_command", "link the words of both sides of a parallel text"),
    "preflight": (
        "rarepapers.planning.preflight",
        "check devices, disk and data before a long workflow, and print the plan",
    ),
    "train": ("rarepapers.training.train_command", "train one run, continuing where an interrupted one stopped"),
    "evaluate": ("rarepapers.evaluation.evaluate_command", "measure one trained run"),
    "compare": (
        "rarepapers.evaluation.compare_command",
        "test whether translations of systems differ by more than chance",
    ),
    "measure-gpt2": (
        "rarepapers.evaluation.gpt2_margins",
        "measure effective margin and alpha of a GPT-2 checkpoint",
    ),
    "definition": ("rarepapers.rule_inputs.definition_command", "write the config of a paper for its report"),
    "collect": ("rarepapers.reporting.collect", "gather the metrics of all runs into one csv"),
    "cost": ("rarepapers.reporting.cost", "gather the training cost of all runs into one csv"),
    "table": ("rarepapers.reporting.tables.table_command", "render one table of a paper, printed values beside ours"),
    "figure": ("rarepapers.reporting.figures.figure_command", "render one figure of a paper"),
    "claims": ("rarepapers.reporting.claims.claims_command", "give a verdict on every claim of the papers"),
    "agreement": ("rarepapers.reporting.claims.agreement", "compute how far our numbers agree with the printed ones"),
    "page": ("rarepapers.reporting.page.page_command", "render the report: pages that need no network"),
}
COMMANDS = FOR_USERS | FOR_RULES


def main(argv: list[str] | None = None) -> int:
    """Run one command; return its exit status. One that is stopped near the time limit of its SLURM job requeues it."""
    argv = sys.argv[1:] if argv is None else argv
    width = max(map(len, COMMANDS)) + 2
    lists = [
        "\n".join([f"{head}:", *(f"  {name:{width}}{summary}" for name, (_, summary) in commands.items())])
        for head, commands in (("commands", FOR_USERS), ("commands that the rules call", FOR_RULES))
    ]
    parser = argparse.ArgumentParser(
        prog="python -m rarepapers",
        description="`python -m rarepapers COMMAND --help` shows the options of a command.",
        epilog="\n\n".join(lists),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=__version__)
    parser.add_argument("command", choices=COMMANDS, metavar="COMMAND")
    name = parser.parse_args(argv[:1]).command
    module_name, summary = COMMANDS[name]
    module = importlib.import_module(module_name)
    command_parser = argparse.ArgumentParser(prog=f"python -m rarepapers {name}", description=summary)
    module.add_arguments(command_parser)
    arguments = command_parser.parse_args(argv[1:])
    try:
        run(name, module.main, arguments)
    except UserError as error:
        print(f"raretok {name}: error: {error}", file=sys.stderr)
        return EXIT_USER_ERROR
    except BrokenPipeError:  # `rarepapers runs | head`
        sys.stderr.close()
        return 0
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        file = f" ({error.filename})" if error.filename else ""
        print(f"raretok {name}: error: the disk is full{file}; make room and start again", file=sys.stderr)
        return EXIT_USER_ERROR
    except Interrupted as stop:
        print(f"raretok {name}: {stop}", file=sys.stderr)
        if queue_again():
            print(f"raretok {name}: the time limit is near; SLURM will start this job again", file=sys.stderr)
        return EXIT_INTERRUPTED
    except KeyboardInterrupt:
        print(f"raretok {name}: stopped by Ctrl-C", file=sys.stderr)
        return 128 + signal.SIGINT
    return 0


def run(name: str, command: Callable[[argparse.Namespace], None], arguments: argparse.Namespace) -> None:
    """Run a command; on a cluster node, name the node if it fails, or if it is done and a rule keeps its log."""
    try:
        command(arguments)
    except (UserError, Interrupted):
        raise
    except Exception:
        say_node(name, FAILED)
        raise
    if name in FOR_RULES:
        say_node(name, DONE)


def say_node(name: str, outcome: str) -> None:
    """Print the outcome of a command on this node, for the log; nothing outside a cluster."""
    if on_node := name_node(outcome):
        print(f"raretok {name}: {on_node}", file=sys.stderr)
