"""Whether compiled kernels run: those of the output layer by the profiler, those of the model by the log.

If compiling fails, the pipeline runs uncompiled, says so and is slower; measuring that would mislead.
"""

import contextlib
import io
import warnings

import torch

from gpu_stages.tables import table
from rarepapers.data.prepared_corpus import load_manifest
from rarepapers.experiments.methods import build_method
from rarepapers.rule_inputs import train
from rarepapers.training.loop import build
from raretok.output.output_layer import output_loss


def main(bench) -> None:
    sizes = (103,) if bench.tiny else (7792, 44_256, 44_257)
    for types in sizes:
        for label_smoothing in (0.0, 0.1):
            method = build_method({"loss": {"name": "cross_entropy", "label_smoothing": label_smoothing}})
            names, said = kernels(method, types, bench.device)
            bench.emit(
                what="output layer",
                types=types,
                label_smoothing=label_smoothing,
                compiled=names,
                warnings=said,
                ok=(bool(names) and not said) or bench.device == "cpu",
            )
    smoke = table("smoke")
    run = smoke.run("language_model", "mle", 1)
    manifest = smoke.root / train.manifest(smoke, run)
    if manifest.exists():
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            task, trainer, _ = build(run.settings, load_manifest(manifest), bench.device, compile_model=True)
            trainer.backward(task.micro_batches(0))
        bench.emit(what="model", log=said.getvalue(), ok="does not work" not in said.getvalue())


def kernels(method, types: int, device: str) -> tuple[list[str], list[str]]:
    """Names of compiled kernels that a pass of the layer launches, and warnings."""
    hidden = torch.randn(4096 if device == "cuda" else 64, 64, device=device, requires_grad=True)
    weight = torch.randn(types, 64, device=device, requires_grad=True)
    targets = torch.randint(types, (len(hidden),), device=device)

    def step() -> None:
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            output_loss(method, None, hidden, weight, targets).loss.backward()

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        step()
    activities = [torch.profiler.ProfilerActivity.CPU]
    activities += [torch.profiler.ProfilerActivity.CUDA] if device == "cuda" else []
    with torch.profiler.profile(activities=activities) as profile:
        step()
    names = sorted({event.key for event in profile.key_averages() if "triton" in event.key})
    # torch's own deprecations name torch.compile, too.
    caught = [str(one.message) for one in caught if not issubclass(one.category, DeprecationWarning)]
    return names, [message for message in caught if "compile" in message]
