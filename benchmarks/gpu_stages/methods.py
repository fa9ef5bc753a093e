"""Output layer with every method on the device, compared with float64 on a CPU, at an odd vocabulary size.

The tests compare the float64 form on a CPU with literal references. Errors are ||ours - reference|| /
||reference|| of loss and gradients; data are drawn anew in every call.
"""

import numpy as np
import torch

from gpu_stages.tables import distinct_methods
from rarepapers.core.errors import UserError
from rarepapers.experiments.methods import build_method
from raretok.methods import TrainingFacts
from raretok.output.output_layer import output_loss

# float32 errors are far below; bfloat16 has 8 bits, which moves logits across the thresholds of some methods.
BARS = {"float32": 1e-4, "bfloat16": 5e-2}
SPECIAL = (0, 1, 2, 3)


def main(bench) -> None:
    torch.backends.cuda.matmul.allow_tf32 = False
    types, rows, context, width = (103, 3, 16, 8) if bench.tiny else (5003, 7, 129, 96)
    seed = int(np.random.SeedSequence().generate_state(1)[0])
    bench.emit(seed=seed, types=types, positions=rows * context)
    for name, (settings, rare) in distinct_methods("small").items():
        try:
            reference = values(settings, rare, seed, types, rows, context, width, "cpu", torch.float64)
        except (UserError, ValueError) as error:  # for example, no type of a tiny vocabulary is rare
            bench.emit(method=name, skipped=str(error))
            continue
        for kind, bar in BARS.items():
            ours = values(settings, rare, seed, types, rows, context, width, bench.device, getattr(torch, kind))
            errors = {key: relative(ours[key], reference[key]) for key in reference}
            held = all(error <= bar for error in errors.values())
            bench.emit(method=name, precision=kind, **{key: float(f"{e:.3g}") for key, e in errors.items()}, ok=held)


def values(settings, rare, seed, types, rows, context, width, device, precision) -> dict[str, torch.Tensor]:
    """Loss and gradients of hidden vectors, embedding and bias; bfloat16 is autocast over float32 weights."""
    generator = torch.Generator().manual_seed(seed)
    exact = torch.float64 if precision == torch.float64 else torch.float32

    def draw(*shape):
        values = torch.randn(*shape, generator=generator, dtype=torch.float64)
        return values.to(device, exact).requires_grad_()

    hidden, weight, bias = draw(rows, context, width), draw(types, width), draw(types)
    share = 1 / (torch.arange(types, dtype=torch.float64) + 2.7)
    counts = (share / share.sum() * 50 * types).long().clamp_min(1)
    ids = torch.multinomial(share, rows * (context + 1), replacement=True, generator=generator)
    ids = ids.view(rows, context + 1).to(device)
    inputs, targets = ids[:, :-1].contiguous(), ids[:, 1:].contiguous()
    method = build_method(settings)
    derive = rare or {"alpha": 0.03, "share": 0.2, "mass": 0.048, "tokens": 103227021}
    facts = TrainingFacts(counts.numpy(), SPECIAL, targets.numel(), 5, derive, device)
    if hasattr(method.penalty, "parametrise"):
        raise UserError("its penalty changes the model; the stage trainings has it")
    method = method.started(facts)
    gate = method.gate.start(facts) if method.gate is not None else None
    if gate is not None:
        gate.begin_step(targets.flatten().cpu())
    with torch.autocast(device, torch.bfloat16, enabled=precision == torch.bfloat16):
        loss = output_loss(method, gate, hidden, weight, targets, inputs=inputs, bias=bias).loss
    loss.backward()
    found = {"loss": loss.detach(), "hidden": hidden.grad, "weight": weight.grad, "bias": bias.grad}
    return {key: value.detach().double().cpu() for key, value in found.items() if value is not None}


def relative(ours: torch.Tensor, reference: torch.Tensor) -> float:
    """Relative error; infinite if a value is not finite."""
    error = ((ours - reference).norm() / reference.norm().clamp_min(1e-30)).item()
    return error if error == error else float("inf")
