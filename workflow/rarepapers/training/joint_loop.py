"""Training loop of several runs in one job; `rarepapers.training.loop` is that of a single run.

Its results are the final files of every run, kept in the run's state folder (`rarepapers.training.finished_files`). The
run's own `train` puts them in place.
"""

import dataclasses
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import torch

from rarepapers.core.code_digest import code_of
from rarepapers.core.errors import UserError
from rarepapers.experiments.run_table import RUN_FOLDER, STATE_FOLDER
from rarepapers.machine.clock import Clock, Saves, log
from rarepapers.machine.device import keep_freed_memory
from rarepapers.machine.signals import StopFlag
from rarepapers.training import checkpoint, finished_files
from rarepapers.training.joint_trainer import JointTrainer
from rarepapers.training.loop import Options, stop_error
from rarepapers.training.progress import Progress
from rarepapers.training.trainer import StepResult
from rarepapers.training.training_run import Training


class JointFolders:
    """Folders of a stack's runs in a results folder.

    states, outputs: one per run. together: the stack's own state.
    """

    def __init__(self, results: Path, stack):
        """stack: a `rarepapers.experiments.joint_runs.JointRuns`."""
        self.states = [results / STATE_FOLDER.format(**vars(run)) for run in stack.runs]
        self.outputs = [results / RUN_FOLDER.format(**vars(run)) for run in stack.runs]
        self.together = results / "state" / "together" / stack.hash


def train_together(stack, corpus, folders: JointFolders, options: Options) -> None:
    """Train the runs of a stack to the end, continuing an interrupted attempt.

    stack: a `joint_runs.JointRuns`. Runs that are finished or were started alone are left out. A run whose loss is not
    finite leaves the stack, and its own `train` then reports the error; the others continue. Raises Interrupted if a
    signal stopped the training (after saving), UserError if the state belongs to another stack.
    """
    stop = StopFlag()
    if options.device == "cpu":
        torch.set_num_threads(stack.runs[0].settings["training"]["threads"])
        keep_freed_memory()
    job = Job(stack, corpus, folders, options.device)
    if not job.members:
        log("none of these runs is to be trained here")
        return
    first, progress = job.members[0], job.progress

    def save_and_stop() -> None:
        job.save()
        raise stop_error(stop.signal, progress.step, first.steps)

    saves = Saves(options.checkpoint_seconds, options.checkpoint_steps)
    while job.members:
        first = job.members[0]
        if first.must_validate and not job.validate(lambda: stop.signal):
            save_and_stop()
        for member in job.members:
            member.look()
        if progress.step == first.steps:
            break

        result = job.stack.backward()
        is_save_step = stop.signal is not None or saves.is_due(progress.step + 1)
        # Reading a number from a GPU waits for it, so numbers are read only when something is written.
        if options.device == "cpu" or first.is_log_step or is_save_step:
            result = job.check(result)
        job.stack.step(first.learning_rate)
        job.advance(result)

        if is_save_step:
            if stop.signal:
                save_and_stop()
            saves.make(job.save)
        job.clock.report(job.mean(result.nll))

    job.finish()


class Job:
    """The runs of a stack in training, their progress, and their common state.

    members: trainings that are still in the stack, all at the same step. failed: error messages of the others.
    progress: of the job, with the tokens of all runs; its seconds are divided by `number`, the number of runs at the
    start.
    """

    def __init__(self, stack, corpus, folders: JointFolders, device: str):
        self.folder = folders.together
        trainings = [
            Training(vars(run), corpus, state / "finished", state)
            for run, state in zip(stack.runs, folders.states, strict=True)
        ]
        self.sources = code_of("rarepapers.training.joint_loop")
        sources = " ".join([self.sources, *sorted({training.identity["sources"] for training in trainings})])
        self.identity = {"run": stack.hash, "data": corpus.sha256, "sources": sources}
        saved = checkpoint.load_checkpoint(self.folder, **self.identity)
        begun = None if saved is None else saved[1]["members"]
        self.members = [
            training
            for training, output in zip(trainings, folders.outputs, strict=True)
            if is_trained_here(training, output, begun)
        ]
        self.failed: list[str] = []
        tasks = {}
        for member in list(self.members):
            self.attempt(member, partial(member.build, device, False, tasks))
        self.progress, self.number = Progress(), len(self.members)
        if not self.members:
            return
        self.stack = JointTrainer(self.members)
        self.places = {member: place for place, member in enumerate(self.stack.members)}
        self._go_on(saved)
        self.clock = Clock(self.progress, self.members[0].steps)

    def _go_on(self, saved: tuple[dict, dict] | None) -> None:
        """Restore a saved state, or start from the beginning."""
        if saved is None:
            for member in self.members:
                member.go_on(None)
            log(f"training {self.number} runs together")
            return
        groups, facts = saved
        own: dict[str, dict] = {}
        for name, tensors in groups.items():
            hash_, _, group = name.partition("/")
            own.setdefault(hash_, {})[group] = tensors
        for member in self.members:
            hash_ = member.run["hash"]
            member.go_on((own[hash_], {"progress": facts["members"][hash_]}))
        self.progress, self.number = Progress(**facts["progress"]), facts["number"]
        self.progress.resumes += 1
        log(f"continuing {len(self.members)} runs together at step {self.progress.step}")

    def save(self) -> None:
        """Write the state of all members, from which the same job continues exactly."""
        self.clock.stop()
        groups = {}
        for member in self.members:
            member.save_best()
            groups |= {f"{member.run['hash']}/{name}": group for name, group in member.trainer.state().items()}
        facts = self.identity | {
            "progress": dataclasses.asdict(self.progress),
            "number": self.number,
            "members": {member.run["hash"]: dataclasses.asdict(member.progress) for member in self.members},
        }
        checkpoint.save_checkpoint(self.folder, groups, facts)
        for member in self.members:
            member.drop_old_weights()

    def validate(self, must_stop: Callable[[], object]) -> bool:
        """Score all members on the validation text; returns False if it must stop."""
        losses = self.stack.validation_losses(self.progress.step, must_stop)
        if losses is None:
            return False
        for member in list(self.members):
            self.attempt(member, partial(member.note, {"valid": losses[self.places[member]]}))
        return True

    def check(self, result: StepResult) -> StepResult:
        """A step's numbers, read from the device; members whose loss or gradient is not finite leave the stack."""
        numbers = torch.stack([result.loss, result.nll, result.norm]).cpu()
        if not numbers.isfinite().all():
            for member in list(self.members):
                self.attempt(member, partial(member.check, StepResult(*numbers[:, self.places[member]])))
        return StepResult(*numbers)

    def mean(self, values: torch.Tensor) -> torch.Tensor:
        """The mean of the members' values; `values` may have others', which are not finite."""
        return values.mean() if not self.failed else values[[self.places[member] for member in self.members]].mean()

    def attempt(self, member: Training, action: Callable[[], None]) -> None:
        """Call `action` for a member; the member leaves the stack if that raises UserError."""
        try:
            action()
        except UserError as error:
            self.members.remove(member)
            self.failed.append(f"{member.name} left the runs trained together and needs a training of its own: {error}")
            log(self.failed[-1])

    def advance(self, result: StepResult) -> None:
        """Count a finished step."""
        is_log_step = self.members and self.members[0].is_log_step
        for member in self.members:
            place = self.places[member]
            own = StepResult(*(part[place] for part in vars(result).values())) if is_log_step else result
            member.advance(own)
            self.progress.tokens += member.task.tokens_per_step
        self.progress.step += 1

    def finish(self) -> None:
        """Write the final files of the members and remove the state."""
        # If the job is killed while writing them, it continues from here.
        self.save()
        seconds = self.progress.seconds
        shared = {"together": self.number, "together_seconds": round(seconds, 3), "together_sources": self.sources}
        for member in self.members:
            member.progress.seconds = seconds / self.number
            member.progress.cpu_seconds = self.progress.cpu_seconds / self.number
            member.sharing = shared
            member.finish()
        checkpoint.drop_state(self.folder)
        for sentence in self.failed:
            log(sentence)


def is_trained_here(training: Training, output: Path, begun: Mapping[str, dict] | None) -> bool:
    """Whether a run is trained in its stack; if not, the log says why.

    output: folder of its final files. begun: progress of the runs in the stack's saved state by hash, if there is one.
    """
    if any(finished_files.holds(folder, training.identity) for folder in (training.output, output)):
        log(f"{training.name} is finished")
        return False
    if checkpoint.load_checkpoint(training.state, **training.identity) is not None:
        log(f"{training.name} was begun alone and goes on alone")
        return False
    if begun is None:
        return True
    if training.run["hash"] not in begun:
        log(f"{training.name} is not in the saved state of this stack and is left to a training of its own")
        return False
    best_step = begun[training.run["hash"]]["best_step"]
    if best_step and not training.average and not checkpoint.weights_path(training.state, "best", best_step).exists():
        # A training of its own that was killed before its first checkpoint has removed them.
        log(f"{training.name} has lost its best weights of step {best_step} and is left to a training of its own")
        return False
    return True
