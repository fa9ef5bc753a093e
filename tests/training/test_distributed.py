"""Several processes train like one (weights, counters, observations, validation), and stop and fail together.

In 64 bits every error shows, because rounding does not. In 32 bits AdamW amplifies rounding where a gradient is zero
otherwise, like that of the keys' biases, so models have no biases there.
"""

import os
import signal
import time
from types import SimpleNamespace

import pytest
import torch
from filelock import FileLock
from safetensors.torch import load_file
from tests.training.conftest import LANGUAGE_SETTINGS, SETTINGS, TRANSLATION_SETTINGS, run_of
from tests.training.group import Group, command, is_alive, launched, step_all, stepped, workers
from tests.training.test_survival import assert_same_results

from rarepapers.core.config_files import canonical_json
from rarepapers.core.errors import UserError
from rarepapers.core.files import CHECKPOINT, read_json
from rarepapers.machine import processes
from rarepapers.machine.process_launcher import first_failure, launch
from rarepapers.training import distributed
from rarepapers.training.random_states import own_seed

STEPS = 20
OF_KIND = {"characters": SETTINGS, "language": LANGUAGE_SETTINGS, "translation": TRANSLATION_SETTINGS}
SMOOTHING = {"loss": {"name": "cross_entropy", "label_smoothing": 0.1}}
AGG = {"gate": {"name": "agg", "alpha": 0.3, "memory": 5}}
AGPS = {"gate": {"name": "agps", "rare_from": 30, "mu_1": 50.0, "mu_2": 20.0}}
SKIP = {"embedding_update": {"name": "separated", "reading": "skip"}}
OBSERVE = [{"name": "rare_types", "steps": 20}, {"name": "rare_alignment", "every": 3}]
MARGIN = {"loss": {"name": "threshold", "margin": 0.1}}
BIAS = [{"name": "output_bias", "every": 9}, {"name": "divergence", "every": 9, "positions": 60}]

# name: (kind of corpus, method, changes of model and training). Language runs have two micro-batches of three rows.
CASES = {
    "mle": ("language", {}, {}),
    "one_batch": ("language", {}, {"training": {"batch_size": 5, "accumulation": 1}}),
    "untied": ("language", {}, {"model": {"tied": False}}),
    "smoothing": ("language", SMOOTHING, {}),
    "agg": ("language", AGG | {"observe": OBSERVE}, {}),
    "agps": ("language", AGPS, {}),
    "freeze": ("language", {"gate": {"name": "freeze", "share": 0.3}}, {"training": {"clip_norm": 0.1}}),
    "freeze_bc": ("language", {"gate": {"name": "freeze", "part": "bc", "share": 0.3}}, {}),
    "cosreg": ("language", {"penalty": {"name": "cosreg", "gamma": 1.0}}, {}),
    "spectrum": ("language", {"penalty": {"name": "spectrum"}}, {}),
    "spectrum_untied": ("language", {"penalty": {"name": "spectrum"}}, {"model": {"tied": False}}),
    "unlikelihood": ("language", {"penalty": {"name": "unlikelihood"}}, {}),
    "adversarial": ("language", {"perturbation": {"name": "adversarial", "alpha": 0.05}}, {}),
    "contrastive": ("language", {"loss": {"name": "contrastive"}}, {}),
    "threshold": ("characters", {"loss": {"name": "threshold", "margin": 2.0}}, {}),
    "softminus": ("characters", {"loss": {"name": "softminus", "margin": 2.0}}, {}),
    "skip": ("characters", MARGIN | SKIP | {"observe": ["gradient_norms"]}, {}),
    "translation": ("translation", {"penalty": {"name": "unigram", "strength": 0.1, "until": 9}, "observe": BIAS}, {}),
    "translation_agg": ("translation", SMOOTHING | {"gate": {"name": "agg", "alpha": 0.9}}, {}),
    "translation_contrastive": ("translation", {"loss": {"name": "contrastive"}}, {"model": {"tying": "three_way"}}),
}
# For three processes: batches that do not divide evenly, or are too small for all.
OF_THREE = {
    "agg": ("language", AGG | {"observe": OBSERVE}, {"training": {"batch_size": 4}}),
    "few": ("language", AGG, {"training": {"batch_size": 2}}),
    "few_contrastive": ("language", {"loss": {"name": "contrastive"}}, {"training": {"batch_size": 2}}),
    "few_skip": ("characters", MARGIN | SKIP | {"observe": ["gradient_norms"]}, {"training": {"batch_size": 2}}),
    "few_pairs": ("translation", SMOOTHING | AGG, {"training": {"batch_tokens": 24}}),
}
IN_32_BITS = ["mle", "agg", "spectrum", "contrastive", "threshold", "translation"]


@pytest.fixture(scope="module")
def trainings(corpus, language, translation):
    """name, cases and precision -> the arguments of `stepped`."""
    corpora = {"characters": corpus, "language": language, "translation": translation}

    def of(name, cases=CASES, precision=torch.float64):
        kind, method, changes = cases[name]
        model = {"dropout": 0.0, "bias": precision == torch.float64} | changes.get("model", {})
        run = run_of(OF_KIND[kind], **(changes | {"model": model, "method": method}))
        return kind, corpora[kind], run["settings"], STEPS, precision

    return of


@pytest.fixture(scope="module")
def by_two(trainings, tmp_path_factory):
    """Folder with the results of two processes for every case in 64 bits, and for some in 32."""
    cases = {name: trainings(name) for name in CASES}
    cases |= {f"{name}_32": trainings(name, precision=torch.float32) for name in IN_32_BITS}
    return results(2, cases, tmp_path_factory.mktemp("by_two"))


@pytest.fixture(scope="module")
def by_three(trainings, tmp_path_factory):
    return results(3, {name: trainings(name, OF_THREE) for name in OF_THREE}, tmp_path_factory.mktemp("by_three"))


def results(size, cases, folder):
    assert Group(size, step_all, cases, folder).end() == [0] * size
    return folder


def assert_equal_to_one(found, arguments, tolerance):
    """Assert that every process has the results of one: integers exactly, others nearly; and all have the same bits."""
    alone = stepped(*arguments)
    assert all(tensors.keys() == alone.keys() for tensors in found)
    for name, expected in alone.items():
        for tensors in found[1:]:
            assert torch.equal(tensors[name].nan_to_num(), found[0][name].nan_to_num()), name
        if expected.dtype == torch.int64:
            assert torch.equal(found[0][name], expected), name
        else:
            # Validation runs in 32 bits.
            close = 1e-6 if name == "valid" else tolerance
            torch.testing.assert_close(found[0][name], expected, rtol=close, atol=close, equal_nan=True, msg=name)


def read(folder, name, size):
    return [torch.load(folder / f"{name}-{rank}.pt") for rank in range(size)]


@pytest.mark.parametrize("name", CASES)
def test_two_processes_train_like_one(trainings, by_two, name):
    assert_equal_to_one(read(by_two, name, 2), trainings(name), 1e-11)


@pytest.mark.parametrize("name", IN_32_BITS)
def test_two_processes_train_like_one_in_32_bits(trainings, by_two, name):
    """The bar is 1e-6 after 20 steps."""
    assert_equal_to_one(read(by_two, f"{name}_32", 2), trainings(name, precision=torch.float32), 1e-6)


@pytest.mark.parametrize("name", OF_THREE)
def test_three_processes_train_like_one_if_batches_do_not_divide(trainings, by_three, name):
    assert_equal_to_one(read(by_three, name, 3), trainings(name, OF_THREE), 1e-11)


@pytest.mark.slow
def test_recomputed_activations_work_in_two_processes(trainings, tmp_path):
    cases = {"recomputed": ("language", AGG, {"training": {"activation_checkpointing": True}})}
    arguments = trainings("recomputed", cases)
    found = read(results(2, {"recomputed": arguments}, tmp_path), "recomputed", 2)
    assert_equal_to_one(found, arguments, 1e-11)


def test_shares_have_every_row_once(monkeypatch):
    for rows in (0, 1, 7, 12):
        shares = []
        for rank in range(8):
            monkeypatch.setattr(processes, "group", processes.Group(rank, 8))
            shares.append(distributed.share((list(range(rows)), torch.arange(rows))))
        assert [row for part, _ in shares for row in part] == list(range(rows))
        assert torch.equal(torch.cat([part for _, part in shares]), torch.arange(rows))
        assert {len(part) for part, _ in shares} <= {rows // 8, rows // 8 + 1}


def test_each_process_has_its_own_random_numbers(monkeypatch):
    """The first process has those of a single one; all differ, also after an interruption."""
    seeds = []
    for rank in range(4):
        monkeypatch.setattr(processes, "group", processes.Group(rank, 4))
        seeds += [own_seed(3, 0), own_seed(3, 20)]
    assert seeds[0] == 3
    assert len(set(seeds)) == 8


class Command:
    """`rarepapers train` in several processes, forked, in one folder."""

    def __init__(self, folder, manifest, run, size, checkpoint_steps=20, own_disk=None):
        self.output, self.state, self.log = folder / "output", folder / "state", folder / "log.txt"
        folder.mkdir(exist_ok=True)
        paths = {"--manifest": manifest, "--output": self.output, "--state": self.state}
        arguments = ["train", "--run", run, "--device", "cpu", "--checkpoint-steps", str(checkpoint_steps)]
        arguments += [str(word) for item in paths.items() for word in item]
        self.group = Group(size, command, arguments, str(self.log), own_disk)

    def text(self):
        return self.log.read_text()

    def wait_for_state(self):
        wait_for((self.state / CHECKPOINT).exists)

    def end(self, *arguments):
        return self.group.end(*arguments)


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


# Counters, row-wise moments, dropout, running sums, snapshots; three rows per step over three processes.
RUN = run_of(
    SETTINGS,
    training={"steps": 120, "batch_size": 4, "validation": {"every": 25, "batches": 2}},
    method=SETTINGS["method"] | {"observe": [{"name": "rare_types", "steps": 90}, {"name": "snapshots", "every": 40}]},
)


@pytest.fixture(scope="module")
def unbroken(manifest, tmp_path_factory):
    training = Command(tmp_path_factory.mktemp("unbroken"), manifest, canonical_json(RUN), 3)
    assert training.end() == [0, 0, 0], training.text()
    return training


def test_only_the_first_of_three_processes_writes(unbroken):
    """The others fail if they write (`group.command`)."""
    record = read_json(unbroken.output / "training.json")
    assert record["processes"] == 3
    assert record["tokens"] == 120 * 4 * 16
    assert unbroken.text().count("finished 120 steps") == 1
    assert record["device"].startswith("CPU")
    assert [path.name for path in unbroken.state.iterdir() if path.name != "lock"] == ["finished"]


def test_a_signal_to_one_process_stops_all(manifest, tmp_path, unbroken):
    """The state is saved once, the run continues exactly (dropout too), and a finished run is not repeated."""
    training = Command(tmp_path, manifest, canonical_json(RUN), 3, checkpoint_steps=10)
    training.wait_for_state()
    assert training.end(signal.SIGUSR1, 2) == [75, 75, 75], training.text()
    assert training.text().count("SIGUSR1: stopped at step") == 1
    again = Command(tmp_path, manifest, canonical_json(RUN), 3)
    assert again.end() == [0, 0, 0], again.text()
    assert again.text().count("continuing e/m seed 3 at step") == 1
    assert "trained this run before" not in again.text()
    assert_same_results(again.output, unbroken.output)
    last = Command(tmp_path, manifest, canonical_json(RUN), 3)
    assert last.end() == [0, 0, 0]
    assert last.text().count("was finished before") == 1


def test_a_state_that_not_all_processes_find_is_refused(manifest, tmp_path):
    """On machines without a shared disk each would otherwise train its own run."""
    run = canonical_json(run_of(SETTINGS, training={"steps": 10**6}))
    training = Command(tmp_path, manifest, run, 2)
    training.wait_for_state()
    assert training.end(signal.SIGTERM) == [75, 75]
    again = Command(tmp_path, manifest, run, 2, own_disk=str(tmp_path / "other"))
    assert again.end() == [2, 2]
    assert again.text().count("not every process finds the same state in") >= 1
    assert "Traceback" not in again.text()


def test_a_process_that_dies_ends_the_others(manifest, tmp_path):
    """At once, with one sentence each. Fewer processes continue from the checkpoint, and say so."""
    run = run_of(SETTINGS, training={"steps": 10**6})
    training = Command(tmp_path, manifest, canonical_json(run), 3)
    training.wait_for_state()
    begin = time.monotonic()
    assert training.end(signal.SIGKILL, 1, 30) == [2, -signal.SIGKILL, 2], training.text()
    assert time.monotonic() - begin < 15
    for rank in (0, 2):
        assert f"process {rank} of 3 lost the others" in training.text()
    assert "Traceback" not in training.text()
    fewer = Command(tmp_path, manifest, canonical_json(run), 2)
    wait_for(lambda: "continuing" in fewer.text())
    assert "3 process(es) trained this run before, now 2 do" in fewer.text()
    assert fewer.end(signal.SIGTERM) == [75, 75]


def test_an_old_torch_is_refused(monkeypatch):
    monkeypatch.setattr(torch, "__version__", "2.11.0+cu130")
    with pytest.raises(UserError, match=r"need torch 2.13 or later, not 2\.11\.0"):
        launch(2, ["train"])


def test_a_users_mistake_is_reported_once(manifest, tmp_path):
    """All processes see a non-finite loss; only the first one finds a lock."""
    schedule = {"name": "cosine", "peak": 1e38, "final": 1e37, "warmup": 5}
    training = Command(tmp_path, manifest, canonical_json(run_of(SETTINGS, training={"schedule": schedule})), 2)
    assert training.end() == [2, 2]
    assert training.text().count("is not finite at step") == 1
    assert "Traceback" not in training.text()
    with FileLock(training.state / "lock"):
        second = Command(tmp_path, manifest, canonical_json(RUN), 2)
        assert second.end() == [2, 2]
    assert second.text().count("another process is training this run") == 1


def test_translations_are_divided_among_processes(translation_manifest, make_translation_run, tmp_path):
    """BLEU is over all sentences; with a mean of checkpoints."""
    run = make_translation_run(model={"dropout": 0.0, "bias": False}, training={"steps": 30})
    outputs = []
    for size in (1, 2):
        training = Command(tmp_path / str(size), translation_manifest, canonical_json(run), size)
        assert training.end() == [0] * size, training.text()
        outputs.append(training.output)
    one, other = (read_json(output / "training.json") for output in outputs)
    assert one["best_validation_bleu"] == pytest.approx(other["best_validation_bleu"], abs=1e-9)
    assert one["best_validation_bleu"] > 0
    assert one["averaged_steps"] == other["averaged_steps"] == [15, 30]
    weights = [load_file(output / "model.safetensors") for output in outputs]
    assert all(torch.allclose(weights[0][name], weights[1][name], atol=1e-5) for name in weights[0])


def test_the_log_names_the_process_that_died():
    def failed(**statuses):
        return {int(name[1:]): SimpleNamespace(exitcode=status, timestamp=7) for name, status in statuses.items()}

    assert first_failure(failed(_0=2, _1=-9, _2=2)) == (1, -9)
    assert first_failure(failed(_0=-15, _1=1)) == (1, 1)
    assert first_failure(failed(_0=75, _1=75)) == (0, 75)


ENDS = [
    # A signal to the launcher, as from Snakemake and SLURM, is passed on; the state is saved and reported once.
    pytest.param(signal.SIGTERM, None, 75, "SIGTERM: stopped at step"),
    # The launcher reports the death of a process in one sentence.
    pytest.param(
        signal.SIGKILL,
        1,
        1,
        "process 1 of 2 was killed by SIGKILL, and the others were stopped",
        marks=pytest.mark.slow,
    ),
    # Without their launcher, which passes signals on, the processes save and stop. Each may report it, because
    # without it they cannot agree on one that does.
    pytest.param(signal.SIGKILL, None, -signal.SIGKILL, "SIGHUP: stopped at step", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("number", "worker", "status", "sentence"), ENDS)
def test_the_launcher_passes_on_signals_and_reports_deaths(manifest, tmp_path, number, worker, status, sentence):
    run = canonical_json(run_of(SETTINGS, training={"steps": 10**6}))
    with launched(tmp_path, manifest, run) as (process, log):
        wait_for((tmp_path / "state" / CHECKPOINT).exists)
        started = workers(process)
        os.kill(process.pid if worker is None else started[worker], number)
        if number == signal.SIGTERM:
            # Schedulers send signals more than once.
            time.sleep(0.01)
            os.kill(process.pid, number)
        assert process.wait(60) == status
        alive = [other for other in started if is_alive(other)]
        # It waits for its processes, unless it is killed.
        assert not alive or status == -signal.SIGKILL
        wait_for(lambda: not any(is_alive(other) for other in started))
    assert len(started) == 2
    assert log.read_text().count(sentence) in ((1, 2) if status == -signal.SIGKILL else (1,))
    assert "Traceback" not in log.read_text()
