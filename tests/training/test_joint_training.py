"""Joint training of runs: equivalence to single runs, resumption, and runs that are left out."""

import copy
import json
import signal
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import yaml
from safetensors.numpy import load_file
from tests.training.child import Training as Child
from tests.training.conftest import SETTINGS
from tests.workflow.conftest import ROOT

from rarepapers.core.errors import UserError
from rarepapers.core.files import read_json
from rarepapers.experiments.joint_runs import JointRuns, group_runs, read_joint_runs
from rarepapers.experiments.run_table import Run
from rarepapers.models.stacked_output import StackedOutput
from rarepapers.training.joint_loop import JointFolders, train_together
from rarepapers.training.joint_trainer import JointTrainer
from rarepapers.training.loop import Options, train
from rarepapers.training.training_run import Training

PAPER = yaml.safe_load((ROOT / "config" / "papers" / "stop_jostling" / "paper.yaml").read_text())
PARTS = ("loss", "gate", "penalty", "perturbation", "embedding_update", "training_temperature", "observe")
# Methods of other papers: one of each kind that a stack treats differently.
OTHERS = {
    "unlikelihood": {"penalty": {"name": "unlikelihood"}},
    "ul_agg": {"penalty": {"name": "unlikelihood"}, "gate": {"name": "agg", "alpha": 0.5, "memory": 30}},
    "ul_agg_gated": {
        "penalty": {"name": "unlikelihood", "gated": True},
        "gate": {"name": "agg", "alpha": 0.5, "memory": 30},
    },
    "unigram_until": {"penalty": {"name": "unigram", "strength": 0.1, "until": 2}},
    "frozen": {"gate": {"name": "freeze"}},
    "freeze_bc": {"gate": {"name": "freeze", "part": "bc"}},
    "agps": {"gate": {"name": "agps", "rare_from": 30, "mu_1": 50.0, "mu_2": 20.0}},
    "smoothed": {"loss": {"name": "cross_entropy", "label_smoothing": 0.1}},
    "smoothed_more": {"loss": {"name": "cross_entropy", "label_smoothing": 0.2}},
    "adaptive": {"loss": {"name": "adaptive_training"}},
    "adjusted": {"loss": {"name": "logit_adjustment"}},
    "mu_centering": {"embedding_update": {"name": "mu_centering"}},
    "coupled_adam": {"embedding_update": {"name": "coupled_adam"}},
    "snapshots": {"observe": [{"name": "snapshots", "every": 2}]},
}


def methods(tied):
    """Every method of stop_jostling with this kind of output matrix, and OTHERS."""
    found = {
        name: {key: copy.deepcopy(entry[key]) for key in PARTS if key in entry}
        for name, entry in PAPER["methods"].items()
        if entry.get("model", {}).get("tied", True) == tied
    }
    for method in found.values():
        # The number of steps of a test, and a threshold that makes some types rare.
        if "gate" in method:
            method["gate"] |= {"alpha": 0.5 if method["gate"]["alpha"] < 0.1 else 1.5, "memory": 3}
    return found | copy.deepcopy(OTHERS)


def run_of(name, method, seed=3, steps=40, **changes):
    settings = copy.deepcopy(SETTINGS) | {"method": method, "seed": seed}
    settings["model"] |= {"dropout": 0.0, "init_std": 0.1}
    settings["training"] |= {"steps": steps, "validation": {"every": 15, "batches": 2}}
    for section, values in changes.items():
        settings[section] |= values
    return Run("p", "e", name, seed, settings, f"{name}.{seed}".replace(".", "_"))


@pytest.fixture(autouse=True)
def no_stop(monkeypatch):
    for module in ("joint_loop", "loop"):
        monkeypatch.setattr(f"rarepapers.training.{module}.StopFlag", lambda: SimpleNamespace(signal=None))


def alone(run, corpus, folder, steps=None):
    """The trainer of a run after some steps alone."""
    training = Training(vars(run), corpus, folder, folder)
    training.build("cpu", False)
    for _ in range(steps):
        training.look()
        result = training.backward()
        training.trainer.step(training.learning_rate)
        training.progress.step += 1
    return training, result


@pytest.mark.parametrize("tied", [True, False])
def test_every_method_equals_its_single_run(tmp_path, corpus, tied):
    """After twenty steps only rounding differs, because products of many models are summed in another order.

    AdamW divides by the gradient's own size, so that a rounding of a tiny gradient can move a weight by a share of the
    learning rate (0.01 here); hence weights are compared to a thousandth of that, and losses more closely.
    """
    steps = 20
    runs = [
        run_of(name, method, seed, model={"tied": tied})
        for name, method in methods(tied).items()
        for seed in ((3, 4) if name in ("baseline", "agg_a0.2", "threshold_m1_se", "untied_se") else (3,))
    ]
    members = [Training(vars(run), corpus, tmp_path / run.hash, tmp_path / run.hash) for run in runs]
    for member in members:
        member.build("cpu", False)
    stack = JointTrainer(members)
    for _ in range(steps):
        for member in members:
            member.look()
        result = stack.backward()
        stack.step(members[0].learning_rate)
        for member in members:
            member.progress.step += 1
    losses = stack.validation_losses(steps, lambda: None)
    for k, member in enumerate(stack.members):
        single, last = alone(Run(**member.run), corpus, tmp_path / "alone", steps)
        name = member.run["hash"]
        close = {"rtol": 0, "atol": 1e-5, "msg": lambda text, name=name: f"{name}: {text}"}
        for own, other in zip(member.trainer.model.parameters(), single.trainer.model.parameters(), strict=True):
            torch.testing.assert_close(own, other, **close)
        ours, theirs = member.trainer.optimiser.state(), single.trainer.optimiser.state()
        assert ours.keys() == theirs.keys()
        for key, tensor in theirs.items():
            torch.testing.assert_close(ours[key], tensor, **close)
        for ours, theirs in zip(vars(result).values(), vars(last).values(), strict=True):
            torch.testing.assert_close(ours[k], theirs.float(), rtol=1e-4, atol=1e-5)
        assert member.trainer.mean_loss() == pytest.approx(single.trainer.mean_loss(), rel=1e-5)
        validated = single.task.validation_loss(single.trainer.model, steps, lambda: None)
        assert losses[k] == pytest.approx(validated, rel=1e-5)
        counted = member.trainer.state()["criterion"]
        for key, tensor in single.trainer.state()["criterion"].items():
            assert torch.equal(counted[key], tensor), name
        for key, observation in single.trainer.observations.items():
            for entry, tensor in observation.tensors.items():
                torch.testing.assert_close(
                    member.trainer.observations[key].tensors[entry], tensor, rtol=1e-3, atol=1e-5
                )


def test_methods_that_differ_in_numbers_are_computed_at_once(corpus):
    """The methods of tables 1 to 8 need few calls, none of them model by model."""
    found = [
        Training(vars(run_of(name, method)), corpus, ROOT, ROOT)
        for name, method in methods(True).items()
        if name not in OTHERS
    ]
    for training in found:
        training.build("cpu", False)
    families = StackedOutput([training.trainer.criterion.method for training in found], "cpu").families
    assert len(families) <= 10
    assert all(family.is_mapped for family in families)
    assert sorted(k for family in families for k in family.models) == list(range(len(found)))


NAMES = ("baseline", "agg_a0.2", "threshold_m1_se", "cwt", "softminus_m1_c5")


def stack_of(names=NAMES, seeds=(3, 4), further=None, **changes):
    known = methods(True) | (further or {})
    return JointRuns(tuple(run_of(name, known[name], seed, **changes) for seed in seeds for name in names))


def trained(folder, stack, corpus, **options):
    folders = JointFolders(folder, stack)
    train_together(stack, corpus, folders, Options(**options))
    return {run.hash: state / "finished" for run, state in zip(stack.runs, folders.states, strict=True)}


def test_a_run_trained_together_is_accepted_by_its_own_train(tmp_path, corpus, capsys):
    stack = stack_of()
    kept = trained(tmp_path, stack, corpus)
    records = [read_json(folder / "training.json") for folder in kept.values()]
    assert {record["together"] for record in records} == {10}
    whole = records[0]["together_seconds"]
    assert sum(record["seconds"] for record in records) == pytest.approx(whole, abs=0.01)
    assert sum(record["cpu_seconds"] for record in records) > 0
    for run, state, output in zip(
        stack.runs, *map(vars(JointFolders(tmp_path, stack)).get, ("states", "outputs")), strict=True
    ):
        capsys.readouterr()
        train(vars(run), corpus, output, state, Options())
        assert "was finished before" in capsys.readouterr().err
        train(vars(run), corpus, tmp_path / "alone" / run.hash, tmp_path / "state" / run.hash, Options())
        ours, theirs = read_json(output / "training.json"), read_json(tmp_path / "alone" / run.hash / "training.json")
        assert ours.keys() - theirs.keys() == {"together_seconds", "together_sources"}
        assert theirs["together"] == 1
        for key in ("hash", "settings", "data", "sources", "derived", "steps", "tokens", "best_step", "parameters"):
            assert ours[key] == theirs[key], (run.name, key)
        assert ours["best_validation_loss"] == pytest.approx(theirs["best_validation_loss"], rel=1e-4)
        for name in ("model", "last"):
            other = load_file(tmp_path / "alone" / run.hash / f"{name}.safetensors")
            for key, array in load_file(output / f"{name}.safetensors").items():
                np.testing.assert_allclose(array, other[key], atol=2e-4, err_msg=f"{run.name} {key}")
        history = [
            folder.joinpath("history.csv").read_text().splitlines()
            for folder in (output, tmp_path / "alone" / run.hash)
        ]
        assert len(history[0]) == len(history[1])
        for own, other in zip(*history, strict=True):
            assert own.split(",")[:2] == other.split(",")[:2]


def test_runs_finished_or_started_alone_are_left_out(tmp_path, corpus, capsys):
    stack = stack_of(seeds=(3,))
    folders = JointFolders(tmp_path, stack)
    elsewhere = tmp_path / "elsewhere"
    # One is finished, one was finished on another machine, one was started alone.
    train(vars(stack.runs[0]), corpus, folders.outputs[0], folders.states[0], Options())
    train(vars(stack.runs[1]), corpus, folders.outputs[1], elsewhere, Options())
    begun = Training(vars(stack.runs[2]), corpus, folders.outputs[2], folders.states[2])
    begun.start("cpu", False)
    begun.save()
    # The state of other code, from which nothing would continue.
    changed = Training(vars(stack.runs[3]), corpus, folders.outputs[3], folders.states[3])
    changed.identity["sources"] = "other"
    changed.start("cpu", False)
    changed.save()
    capsys.readouterr()
    kept = trained(tmp_path, stack, corpus)
    said = capsys.readouterr().err
    assert "e/baseline seed 3 is finished" in said
    assert "e/agg_a0.2 seed 3 is finished" in said
    assert "e/threshold_m1_se seed 3 was begun alone" in said
    assert "training 2 runs together" in said
    assert [folder.exists() for folder in kept.values()] == [True, False, False, True, True]
    trained(tmp_path, stack, corpus)
    assert "none of these runs is to be trained here" in capsys.readouterr().err


@pytest.mark.parametrize("names", [(), ("baseline", "cwt")])
def test_a_run_that_diverges_leaves_the_others_alone(tmp_path, corpus, capsys, names):
    wild = {"wild": {"penalty": {"name": "cosreg", "gamma": 1e38}}}
    kept = trained(tmp_path / "a", stack_of((*names, "wild"), (3,), wild), corpus)
    said = capsys.readouterr().err
    assert said.count("e/wild seed 3 left the runs trained together") == 2  # when it did, and at the end
    assert "the loss of e/wild seed 3 is not finite at step" in said
    assert not kept.pop("wild_3").exists()
    for hash_, folder in kept.items():
        run = next(run for run in stack_of(names, (3,)).runs if run.hash == hash_)
        train(vars(run), corpus, tmp_path / "alone" / hash_, tmp_path / "state" / hash_, Options())
        other = load_file(tmp_path / "alone" / hash_ / "last.safetensors")
        for key, array in load_file(folder / "last.safetensors").items():
            np.testing.assert_allclose(array, other[key], atol=2e-4)
    stack = stack_of(("wild",), (3,), wild)
    state = JointFolders(tmp_path / "a", stack).states[0]
    with pytest.raises(UserError, match="not finite"):
        train(vars(stack.runs[0]), corpus, tmp_path / "output", state, Options())


def test_a_killed_stack_continues_exactly(tmp_path, corpus, manifest):
    """Killed twice and stopped once, it ends with the final files of an unbroken stack, byte for byte."""
    changes = {"training": {"steps": 200, "validation": {"every": 50, "batches": 2}}}
    stack = stack_of(("baseline", "agg_a0.2", "threshold_m1_se"), further={}, **changes)
    unbroken = trained(tmp_path / "unbroken", stack, corpus)
    for checkpoints, number in ((2, signal.SIGKILL), (3, signal.SIGTERM), (2, signal.SIGKILL)):
        child = StackChild(tmp_path / "broken", stack, manifest)
        child.wait_for_checkpoints(checkpoints)
        assert child.end(number) == (75 if number == signal.SIGTERM else -number)
        assert not list((tmp_path / "broken").rglob("finished"))
    child = StackChild(tmp_path / "broken", stack, manifest)
    assert child.end() == 0, child.text()
    assert child.text().count("continuing 6 runs together at step") == 3
    for run, state in zip(stack.runs, JointFolders(tmp_path / "broken", stack).states, strict=True):
        for name in ("model.safetensors", "last.safetensors", "history.csv", "snapshots.safetensors"):
            assert (state / "finished" / name).read_bytes() == (unbroken[run.hash] / name).read_bytes(), (
                run.name,
                name,
            )
        ours, theirs = (np.load(folder / "observations.npz") for folder in (state / "finished", unbroken[run.hash]))
        assert all(np.array_equal(ours[key], theirs[key]) for key in theirs)
        assert read_json(state / "finished" / "training.json")["resumes"] == 3
        assert {path.name for path in state.iterdir()} == {"lock", "finished"}


def test_a_run_that_lost_its_best_weights_is_left_out_of_a_continued_stack(tmp_path, corpus, manifest):
    changes = {"training": {"steps": 200, "validation": {"every": 50, "batches": 2}}}
    stack = stack_of(("baseline", "agg_a0.2"), (3,), **changes)
    folders = JointFolders(tmp_path, stack)
    child = StackChild(tmp_path, stack, manifest)
    child.wait_for(lambda: list(folders.states[0].glob("best-*.safetensors")))
    child.wait_for_checkpoints(2)  # the second names these weights
    assert child.end(signal.SIGKILL) == -signal.SIGKILL
    # A training of one run alone, killed before its first checkpoint.
    Training(vars(stack.runs[0]), corpus, folders.outputs[0], folders.states[0]).start("cpu", False)
    child = StackChild(tmp_path, stack, manifest)
    assert child.end() == 0, child.text()
    assert "e/baseline seed 3 has lost its best weights of step" in child.text()
    assert "continuing 1 runs together" in child.text()
    assert [(state / "finished").exists() for state in folders.states] == [False, True]


class StackChild(Child):
    """`rarepapers train-together` as its own process."""

    def __init__(self, folder, stack, manifest):
        folder.mkdir(exist_ok=True)
        folders = JointFolders(folder, stack)
        super().__init__(folder, manifest, stack.json(), command="train-together", places=("--results", str(folder)))
        self.state = folders.together


def lines(folder, stack, drop=()):
    path = folder / "runs.jsonl"
    path.write_text(
        "".join(json.dumps({k: v for k, v in vars(run).items() if k not in drop}) + "\n" for run in stack.runs)
    )
    return f"@{path}"


def test_stacks_are_read_from_json_and_from_lines(tmp_path):
    stack = stack_of()
    assert read_joint_runs(stack.json()) == stack
    assert read_joint_runs(lines(tmp_path, stack)) == stack
    with pytest.raises(UserError, match="is not lines of `rarepapers runs --json`"):
        read_joint_runs(lines(tmp_path, stack, drop=("hash",)))
    with pytest.raises(UserError, match="is not lines of"):
        read_joint_runs("[1]")
    with pytest.raises(UserError, match="differ in more than seed and method"):
        read_joint_runs(lines(tmp_path, JointRuns((run_of("a", {}), run_of("b", {}, steps=41)))))
    with pytest.raises(UserError, match="e/a/seed3 cannot be trained together with others: its model has dropout"):
        read_joint_runs(JointRuns((run_of("a", {}, model={"dropout": 0.1}),)).json())
    with pytest.raises(UserError, match="names a run twice"):
        read_joint_runs(JointRuns((run_of("a", {}), run_of("a", {}))).json())


def test_more_seeds_leave_full_stacks_unchanged():
    def planned(seeds):
        # The order of the run table: method by method.
        runs = [run_of(name, {}, seed) for name in "abc" for seed in seeds] + [run_of("long", {}, steps=99)]
        return group_runs(runs, 4)

    few, many = planned([1, 2]), planned([1, 2, 3, 4, 5])
    assert [[run.hash for run in stack.runs] for stack in few] == [["a_1", "b_1", "c_1", "a_2"], ["b_2", "c_2"]]
    assert many[0] == few[0]
    # 15 runs and one of another shape, which is trained alone.
    assert [len(stack.runs) for stack in many] == [4, 4, 4, 3]
    assert len({stack.hash for stack in many}) == 4
    assert group_runs([run_of("a", {}, seed, model={"dropout": 0.1}) for seed in (1, 2)], 4) == []
    spectrum = {"penalty": {"name": "spectrum"}}
    assert group_runs([run_of("a", spectrum, seed) for seed in (1, 2)], 4) == []
