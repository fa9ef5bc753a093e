"""Train and evaluate a small run repeatedly under random faults, and compare every result with an unbroken run's.

    make torture N=1000 ARGS="--log torture.csv"

An attack is a signal at a random instant or in the middle of a system call, a disk that is full, a second process at
the same work, another number of cores, or a clock that runs backwards. After each one every final file is either absent
or as the unbroken run wrote it; in the end all are there. The log has one line per attack.
"""

import argparse
import collections
import csv
import errno
import hashlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from tests.training.child import FORKS, write_to
from tests.training.conftest import SETTINGS, run_of

from rarepapers.core.errors import EXIT_INTERRUPTED, EXIT_USER_ERROR

# Exit status that a shell reports for a process stopped by Ctrl-C.
STOPPED_BY_CTRL_C = 128 + signal.SIGINT
CALLS = ("fsync", "replace")
SIGNALS = ("SIGKILL", "SIGTERM", "SIGINT")
# An attack at a call chooses one of the first so many of a stage.
MOST_CALLS = 12
EVALUATION = {"batch_size": 2, "drop_incomplete": True, "examples": 4, "neighbours": 3}
TRAINED = ("model.safetensors", "last.safetensors", "history.csv", "observations.npz")


@dataclass
class Attack:
    """Faults of one process; the first three are mutually exclusive.

    after: seconds until `signal`. call, number: it gets `signal` inside that call of the name, or, with `signal` "",
    finds the disk full there. cores: how many it may use. clock: seconds that are added to the time of day. twin: a
    second process does the same at the same time.
    """

    stage: str
    signal: str
    after: float = 0.0
    call: str = ""
    number: int = 0
    cores: int = 1
    clock: float = 0.0
    twin: bool = False


def random_attack(generator: random.Random, stage: str, seconds: float) -> Attack:
    """A random attack on a stage that takes so many seconds undisturbed."""
    attack = Attack(stage, generator.choice(SIGNALS), cores=generator.randint(1, os.cpu_count() or 1))
    if generator.random() < 0.5:
        attack.after = generator.uniform(0, seconds)
    else:
        attack.call, attack.number = generator.choice(CALLS), generator.randint(1, MOST_CALLS)
        if attack.call == "fsync" and generator.random() < 0.3:
            attack.signal = ""
    attack.clock = generator.choice((0.0, 0.0, -86_400.0, 3_600.0))
    attack.twin = generator.random() < 0.1
    return attack


def work(arguments: list[str], log: str, attack: Attack | None, started) -> None:
    """`raretok` with these arguments, under attack; the target of a forked process, which sets the event `started`."""
    write_to(log)
    from rarepapers.__main__ import main

    if attack:
        prepare(attack)
    started.set()
    sys.exit(main(arguments))


def prepare(attack: Attack) -> None:
    """Install the attack's faults in this process."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: attack.cores])
    if attack.clock:
        now = time.time
        time.time = lambda: now() + attack.clock
    if attack.call:
        real, seen = getattr(os, attack.call), [0]

        def trapped(*arguments, **options):
            seen[0] += 1
            if seen[0] != attack.number:
                return real(*arguments, **options)
            if not attack.signal:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            # Before or after the call.
            if attack.number % 2:
                os.kill(os.getpid(), signal.Signals[attack.signal])
            result = real(*arguments, **options)
            os.kill(os.getpid(), signal.Signals[attack.signal])
            return result

        setattr(os, attack.call, trapped)


class Ground:
    """A folder with a prepared text, where a run is trained and evaluated."""

    def __init__(self, folder: Path):
        self.folder, self.log = folder, folder / "log.txt"
        self.run = folder / "run"
        self.manifest = folder / "data" / "manifest.json"

    def prepare(self) -> None:
        """Prepare the text."""
        from rarepapers.data.characters.prepare import prepare

        generator = random.Random(0)
        text = "".join(generator.choices("abcdefghijklmnopqrst", weights=range(1, 21), k=4000))
        (self.folder / "text.txt").write_text(text + "abcdefghijklmnopqrst")
        corpus = {"kind": "characters", "splits": {"train": 0.9, "valid": 0.1}}
        prepare("letters", corpus, self.folder / "text.txt", self.folder / "data")

    def arguments(self, stage: str) -> list[str]:
        """Arguments of a stage's command."""
        if stage == "train":
            run = json.dumps(run_of(SETTINGS, training={"steps": 200}))
            own = ["--run", run, "--output", str(self.run), "--state", str(self.folder / "state")]
            own += ["--checkpoint-steps", "20"]
        else:
            own = ["--run-folder", str(self.run), "--settings", json.dumps(EVALUATION)]
            own += ["--metrics", str(self.run / "metrics.json"), "--arrays", str(self.run / "arrays.npz")]
        return [stage, *own, "--manifest", str(self.manifest), "--device", "cpu"]

    def finished(self, stage: str) -> bool:
        """Whether the last file of a stage exists."""
        return (self.run / ("training.json" if stage == "train" else "metrics.json")).exists()

    def start(self, stage: str, attack: Attack | None = None):
        """Start a process that runs a stage."""
        started = FORKS.Event()
        arguments = (self.arguments(stage), str(self.log), attack, started)
        process = FORKS.Process(target=work, args=arguments, daemon=True)
        process.start()
        started.wait(60)
        return process

    def digests(self) -> dict[str, str]:
        """sha256 of each existing final file that does not vary between runs, and of the rows of metrics.json."""
        found = {name: (self.run / name).read_bytes() for name in TRAINED if (self.run / name).exists()}
        if (self.run / "metrics.json").exists():
            rows = json.loads((self.run / "metrics.json").read_text())["metrics"]
            found["metrics.json"] = json.dumps(rows).encode()
            found["arrays.npz"] = (self.run / "arrays.npz").read_bytes()
        return {name: hashlib.sha256(content).hexdigest()[:16] for name, content in found.items()}

    def clear(self) -> None:
        """Remove all results."""
        for part in ("run", "state"):
            shutil.rmtree(self.folder / part, ignore_errors=True)
        self.log.unlink(missing_ok=True)


def suffer(ground: Ground, attack: Attack) -> list[int]:
    """Exit statuses of the attacked process and its twin, after one attack."""
    processes = [ground.start(attack.stage, attack)]
    if attack.twin:
        processes.append(ground.start(attack.stage))
    if attack.after:
        time.sleep(attack.after)
        if processes[0].is_alive():
            os.kill(processes[0].pid, signal.Signals[attack.signal])
    for process in processes:
        process.join(120)
    return [process.exitcode for process in processes]


def torture(attacks: int, seed: int, folder: Path) -> list[dict]:
    """Yield a row of the log for each attack; AssertionError says what was lost, and where to look."""
    generator = random.Random(seed)
    ground = Ground(folder)
    ground.prepare()
    seconds = {}
    for stage in ("train", "evaluate"):
        begun = time.monotonic()
        process = ground.start(stage)
        process.join(120)
        assert process.exitcode == 0, ground.log.read_text()
        seconds[stage] = time.monotonic() - begun
    unbroken = ground.digests()
    ground.clear()
    rows = []
    while len(rows) < attacks:
        stage = "evaluate" if ground.finished("train") else "train"
        attack = random_attack(generator, stage, seconds[stage])
        statuses = suffer(ground, attack)
        said = ground.log.read_text()
        allowed = {0, EXIT_INTERRUPTED, EXIT_USER_ERROR, STOPPED_BY_CTRL_C, -signal.SIGKILL, -signal.SIGTERM}
        assert set(statuses) <= allowed, f"{attack}: {statuses}: {said}"
        assert "Traceback" not in said, f"{attack}: {said}"
        found = ground.digests()
        wrong = {name for name, digest in found.items() if digest != unbroken[name]}
        assert not wrong, f"{attack}: {sorted(wrong)} differ from the unbroken run's, in {folder}"
        rows.append({**asdict(attack), "status": " ".join(map(str, statuses)), "ended": ground.finished("evaluate")})
        if ground.finished("evaluate"):
            assert found == unbroken, f"{attack}: {sorted(unbroken.keys() - found)} are missing, in {folder}"
            ground.clear()
    return rows


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--attacks", type=int, default=50, help="how many (default: 50)")
    parser.add_argument("--seed", type=int, default=0, help="of the attacks (default: 0)")
    parser.add_argument("--log", type=Path, help="csv with a line an attack (default: none)")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="torture-"))
    rows = torture(arguments.attacks, arguments.seed, folder)
    shutil.rmtree(folder)
    if arguments.log:
        with arguments.log.open("w", newline="") as file:
            writer = csv.DictWriter(file, [*(field.name for field in fields(Attack)), "status", "ended"])
            writer.writeheader()
            writer.writerows(rows)
    kinds = collections.Counter(
        row["signal"] + (f" in {row['call']}" if row["call"] else "") if row["signal"] else "full disk" for row in rows
    )
    for kind, number in sorted(kinds.items()):
        print(f"{number:5d}  {kind}")
    twins, clocks = (sum(bool(row[name]) for row in rows) for name in ("twin", "clock"))
    ends = sum(row["ended"] for row in rows)
    print(f"{len(rows)} attacks, {twins} with a second process, {clocks} with another clock")
    print(f"{ends} runs ended, each as the unbroken one")


if __name__ == "__main__":
    main()
