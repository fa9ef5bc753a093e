"""Distributed training processes, forked instead of started by torchrun, which saves seconds each."""

import contextlib
import os
import subprocess
import sys

import psutil
import torch
from tests.training.child import FORKS, run
from torch import distributed as torch_distributed

from rarepapers.machine import processes
from rarepapers.training import distributed
from rarepapers.training.random_states import own_seed
from rarepapers.training.tasks import CharacterTask, LanguageTask
from rarepapers.training.trainer import Trainer
from rarepapers.training.translation_task import TranslationTask

KINDS = {"characters": CharacterTask, "language": LanguageTask, "translation": TranslationTask}


class Group:
    """`target(*arguments)` in `size` processes, with torchrun's environment variables."""

    def __init__(self, size, target, *arguments):
        # This process holds the store, as torchrun does, so that no port is guessed.
        self.store = torch_distributed.TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
        options = {"target": member, "daemon": True}
        self.processes = [
            FORKS.Process(args=(rank, size, self.store.port, target, arguments), **options) for rank in range(size)
        ]
        for process in self.processes:
            process.start()

    def end(self, number=None, rank=0, seconds=120):
        """Send a signal to one process, if any; wait for all; return their exit statuses."""
        if number:
            os.kill(self.processes[rank].pid, number)
        for process in self.processes:
            process.join(seconds)
        return [process.exitcode for process in self.processes]


def member(rank, size, port, target, arguments):
    """Run one process of a group."""
    os.environ |= {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(size),
        "LOCAL_WORLD_SIZE": str(size),
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": str(port),
        "TORCHELASTIC_RUN_ID": "tests",
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "GLOO_SOCKET_IFNAME": "lo",
    }
    torch.set_num_threads(1)
    target(*arguments)


def command(arguments, log, own_disk=None):
    """Run `raretok` with these arguments; all processes but the first fail if they write a file.

    own_disk: a folder of state that processes but the first find in place of the given one.
    """
    if int(os.environ["RANK"]):
        if own_disk:
            arguments[arguments.index("--state") + 1] = own_disk
        import rarepapers.core.files as files

        def refuse(path):
            raise AssertionError(f"a process that is not the first writes {path}")

        files._sync = refuse
    run(arguments, log, None)


def stepped(kind, corpus, settings, steps, precision):
    """The tensors of a training after some steps, as in the loop, by name."""
    torch.set_default_dtype(precision)
    torch.manual_seed(own_seed(settings["seed"], 0))
    task = KINDS[kind](corpus, settings, "cpu")
    trainer = Trainer(settings, task.facts())
    losses = []
    for step in range(steps):
        result = trainer.backward(task.micro_batches(step))
        losses.append(torch.stack([result.loss.double(), result.nll.double(), result.norm.double()]))
        trainer.step(0.003)
    found = {f"weights.{name}": parameter.detach() for name, parameter in trainer.model.named_parameters()}
    found |= {f"moments.{name}": tensor for name, tensor in trainer.optimiser.state().items()}
    found |= {f"criterion.{name}": tensor for name, tensor in trainer.state()["criterion"].items()}
    for name, observation in trainer.observations.items():
        found |= {f"{name}.{key}": tensor for key, tensor in observation.tensors.items()}
    found["losses"] = torch.stack(losses)
    # Validation runs in 32 bits.
    trainer.model.float()
    valid = task.validate(trainer.model, steps, lambda: distributed.agree(None, False)[0])
    torch.set_default_dtype(torch.float32)
    return found | {"valid": torch.tensor(list(valid.values()), dtype=torch.float64)}


def step_all(cases, folder):
    """`stepped` for every case, each process's results in a file of its own."""
    with distributed.joined("cpu"):
        for name, arguments in cases.items():
            torch.save(stepped(*arguments), folder / f"{name}-{processes.rank()}.pt")


@contextlib.contextmanager
def launched(folder, manifest, run, processes=2):
    """`python -m rarepapers train --processes N` as a user starts it: the process, and its log."""
    arguments = ["train", "--run", run, "--manifest", manifest, "--output", folder / "output"]
    arguments += ["--state", folder / "state", "--device", "cpu", "--checkpoint-steps", 20, "--processes", processes]
    log = folder / "log.txt"
    with log.open("w") as file:
        command = [sys.executable, "-m", "rarepapers", *map(str, arguments)]
        process = subprocess.Popen(command, stdout=file, stderr=file)
    try:
        yield process, log
    finally:
        if process.poll() is None:
            process.kill()


def workers(launcher):
    """Ids of the processes that a launcher started."""
    return [child.pid for child in psutil.Process(launcher.pid).children()]


def is_alive(number):
    """Whether a process with this id runs."""
    try:
        return psutil.Process(number).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
