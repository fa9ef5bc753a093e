"""Training in bfloat16 on a CPU: which runs use it, what stays float32, accuracy of gradients."""

import contextlib
from types import SimpleNamespace

import pytest
import torch
from tests.training.test_every_method import FIRST, TABLE, tiny

from rarepapers.core.errors import Interrupted
from rarepapers.core.files import read_json
from rarepapers.data.prepared_corpus import load_manifest
from rarepapers.machine import device
from rarepapers.machine.processor import processor_name
from rarepapers.training import loop, trainer
from rarepapers.training.loop import Options, train
from rarepapers.training.trainer import Trainer, usable_precision

# Largest relative distance of a loss, and of all gradients together, from their float32 values. Losses that
# weight rare targets most depend on a few positions of a batch, over which rounding errors do not cancel.
LOSS, GRADIENT = 0.01, {"cross_bpe": 0.02, "cross_translation": 0.08}


@pytest.fixture
def can(monkeypatch):
    """Let this CPU count as one with bfloat16; torch emulates it slowly."""
    monkeypatch.setattr(trainer, "has_bfloat16", lambda _: True)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [("fpu avx512_bf16", "bfloat16"), ("amx_bf16 amx_tile", "bfloat16"), ("fpu avx512f", "float32"), ("", "float32")],
)
def test_a_cpu_without_bfloat16_trains_in_float32_and_says_so(flags, expected, tmp_path, monkeypatch, capsys):
    (tmp_path / "cpuinfo").write_text(f"processor\t: 0\nflags\t\t: {flags}\n")
    monkeypatch.setattr(device, "CPUINFO", tmp_path / "cpuinfo")
    assert usable_precision("bfloat16", "cpu") == expected
    assert capsys.readouterr().err.count("neither AVX512-BF16 nor AMX") == (expected == "float32")
    assert usable_precision("float32", "cpu") == "float32"
    for has, precision in ((True, "bfloat16"), (False, "float32")):
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation, has=has: has)
        assert usable_precision("bfloat16", "cuda") == precision
    assert "this GPU has no bfloat16" in capsys.readouterr().err
    assert not capsys.readouterr().err


@pytest.mark.parametrize("precision", ["bfloat16", "float32"])
def test_the_record_has_the_precision(tmp_path, language_manifest, make_language_run, no_signals, can, precision):
    run = make_language_run(training={"steps": 20, "precision": precision}, method={})
    train(run, load_manifest(language_manifest), tmp_path / "run", tmp_path / "state", Options())
    record = read_json(tmp_path / "run" / "training.json")
    assert record["precision"] == precision
    assert record["processor"] == processor_name()


def test_the_processor_has_its_numbers(tmp_path):
    lines = ["processor : 0", "model : 207", "model name : Intel(R) Xeon(R)", "cpu family : 6", "", "model : 1"]
    (tmp_path / "cpuinfo").write_text("\n".join(lines).replace(" : ", "\t: "))
    assert processor_name(tmp_path / "cpuinfo") == "Intel(R) Xeon(R) (family 6, model 207)"
    assert processor_name(tmp_path / "none")


@pytest.mark.parametrize("method", FIRST)
@pytest.mark.parametrize("experiment", ["cross_bpe", "cross_translation"])
def test_loss_and_gradients_are_near_float32s(experiment, method, request, can):
    """One step from the same weights on the same batch; weights, gradients and moments are float32."""
    if method not in TABLE.papers["cross"]["methods"] or experiment not in TABLE.experiments_of("cross", method):
        pytest.skip("left out of this task, with a reason in config/papers/cross/paper.yaml")
    settings, task = tiny(experiment, method, request)
    found = {}
    for precision in ("float32", "bfloat16"):
        settings["training"]["precision"] = precision
        torch.manual_seed(1)
        one = Trainer(settings, task.facts())
        loss = one.backward(task.micro_batches(0)).loss.item()
        assert {tensor.dtype for p in one.parameters for tensor in (p, p.grad)} == {torch.float32}
        found[precision] = loss, torch.cat([p.grad.flatten() for p in one.parameters])
        one.step(0.01)
        moments = [tensor for name, tensor in one.optimiser.state().items() if "exp_avg" in name]
        assert {tensor.dtype for tensor in moments} == {torch.float32}
    (loss, gradient), (low_loss, low_gradient) = found["float32"], found["bfloat16"]
    assert low_loss == pytest.approx(loss, rel=LOSS)
    assert not torch.equal(gradient, low_gradient)
    assert (low_gradient - gradient).norm() < GRADIENT[experiment] * gradient.norm()


def test_a_resumed_run_keeps_its_precision(tmp_path, language_manifest, make_language_run, monkeypatch):
    """Even on a machine that would have chosen another."""
    run = make_language_run(training={"precision": "bfloat16"})
    places = load_manifest(language_manifest), tmp_path / "run", tmp_path / "state", Options()
    for has, signal in ((True, "SIGTERM"), (False, "SIGTERM"), (True, None)):
        monkeypatch.setattr(trainer, "has_bfloat16", lambda _, has=has: has)
        monkeypatch.setattr(loop, "StopFlag", lambda signal=signal: SimpleNamespace(signal=signal))
        with pytest.raises(Interrupted) if signal else contextlib.nullcontext():
            train(run, *places)
    record = read_json(tmp_path / "run" / "training.json")
    assert (record["precision"], record["resumes"]) == ("bfloat16", 2)
