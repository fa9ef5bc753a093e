"""Model-steps per second of runs trained together, compared with the same runs one after another.

    python benchmarks/together.py [--threads 1] [--scale smoke] [--together 2 8 32]
    python benchmarks/together.py --device cuda --scale paper --together 1 32 190

The runs are stop_jostling's tied methods with as many seeds as needed, in the workflow's order of stacks, at the sizes
of a scale, on synthetic text. One after another means the trainer as in `train`, with torch.compile on a GPU;
only `--alone` runs of the stack are trained this way. Both are measured in turns. A separate row gives the seconds of
one validation of all members. On a GPU it also reports peak memory.

The bar is 37 models x 5 seeds x 8,000 steps on one GPU in 15 minutes, 1,644 model-steps/s.
"""

import argparse
import statistics
import tempfile
from functools import partial
from pathlib import Path

import torch
from gpu_stages.tables import table
from gpu_stages.timing import seconds
from gpu_stages.waits import step
from training_step import PRESETS, made_corpus

from rarepapers.experiments.joint_runs import group_runs
from rarepapers.training.joint_trainer import JointTrainer
from rarepapers.training.training_run import Training


def runs_of(scale: str, number: int) -> list:
    """`number` runs of one shape, as in the workflow's stacks; raises UserError if the scale has fewer."""
    runs = table(scale, papers=["stop_jostling"], seeds=-(-number // 38)).runs
    return group_runs(runs.values(), max(2, number))[0].runs[:number]


def built(runs, device: str, compiles: bool) -> list[Training]:
    folder = Path(tempfile.gettempdir()) / "no-state"
    corpus = made_corpus("characters", PRESETS["characters"], runs[0].settings["model"]["context"])
    trainings = [Training(vars(run), corpus, folder, folder) for run in runs]
    for training in trainings:
        training.build(device, compiles)
    return trainings


def together(stack: JointTrainer, steps: int) -> None:
    for _ in range(steps):
        stack.backward()
        stack.step(stack.members[0].learning_rate)
        for member in stack.members:
            member.progress.step += 1


def alone(trainings: list[Training], steps: int) -> None:
    for training in trainings:
        for _ in range(steps):
            step(training)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--scale", default="smoke")
    parser.add_argument("--together", type=int, nargs="+", default=[2, 8, 32])
    parser.add_argument("--alone", type=int, default=4, help="runs trained one after another (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--repetitions", type=int, default=5)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    device, steps = arguments.device, arguments.steps
    print("  runs   alone/s  together/s  times  ms a step  validation s    GiB")
    for number in arguments.together:
        if device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        runs = runs_of(arguments.scale, number)
        singles = built(runs[: arguments.alone], device, True)
        stack = JointTrainer(built(runs, device, False))
        alone(singles, 2)
        together(stack, 2)
        times: dict[str, list[float]] = {"alone": [], "together": []}
        for _ in range(arguments.repetitions):
            times["alone"].append(seconds(partial(alone, singles, steps), device))
            times["together"].append(seconds(partial(together, stack, steps), device))
        middle = {name: statistics.median(found) for name, found in times.items()}
        rates = len(singles) * steps / middle["alone"], number * steps / middle["together"]
        validation = seconds(partial(stack.validation_losses, 0, bool), device)
        memory = f"{torch.cuda.max_memory_allocated() / 2**30:6.1f}" if device == "cuda" else ""
        print(
            f"{number:6} {rates[0]:9.1f} {rates[1]:11.1f} {rates[1] / rates[0]:6.2f} "
            f"{1000 * middle['together'] / steps:10.2f} {validation:13.2f} {memory}",
            flush=True,
        )


if __name__ == "__main__":
    main()
