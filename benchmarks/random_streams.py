"""Where the printed gain of separated embeddings comes from: stop_jostling trained with the authors' random numbers.

    python benchmarks/random_streams.py TEXT [--seed 1337] [--initial KIND] [--table KIND] [--batches KIND]

TEXT is tiny Shakespeare. All models have one plain matrix, margin 1 and AdamW. Only the random numbers differ: those
of the initial weights (of the embedding matrix alone with --table) and of the batches are what a model with separated
embeddings (`separated`) or one without (`matrix`) draws in the authors' script, which has one global random state. It
prints the losses of their validation every 250 steps, the cosine of the two versions of a character, and at the end the
accuracy and perplexity of both languages on the whole validation text. About nine minutes on one core. The findings
are in docs/deviations.md, "S1".
"""

import argparse
import json
import math
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

from rarepapers.models.building import build_model
from rarepapers.training.schedule import Cosine
from raretok.losses import OutputLoss
from raretok.methods.threshold import Threshold

SYMBOLS, WIDTH, CONTEXT, BATCH, STEPS, EVERY = 65, 128, 64, 12, 8001, 250
MODEL = {"name": "decoder", "layers": 4, "heads": 4, "width": WIDTH, "context": CONTEXT, "dropout": 0.0, "bias": False}
KINDS = ("matrix", "separated")


def started(kind: str, seed: int) -> tuple[nn.Module, torch.Tensor]:
    """A model as the authors' constructors draw it, and the random state they leave, from which batches are drawn."""
    torch.manual_seed(seed)
    model = build_model(MODEL, 2 * SYMBOLS)  # the layers draw torch's own initial values, in the order of nanoGPT
    nn.Linear(WIDTH, 2 * SYMBOLS, bias=False)
    initialise(model)
    if kind == "separated":
        torch.randn(2, 2 * SYMBOLS, WIDTH)  # vectors of the input and of the output
        initialise(model)
    return model, torch.get_rng_state()


@torch.no_grad()
def initialise(model: nn.Module) -> None:
    """Draw all matrices, the tied one twice, then the projections into the residual stream again."""
    matrices = {name: weights for name, weights in model.named_parameters() if weights.dim() == 2}
    for weights in [*matrices.values(), model.output_weight]:
        weights.normal_(0.0, 0.02)
    for name, weights in matrices.items():
        if name.endswith("projection.weight"):
            weights.normal_(0.0, 0.02 / math.sqrt(2 * MODEL["layers"]))


@dataclass
class Batches:
    """The authors' batches: a place for each block, then for each block whether it is in the other language."""

    ids: dict[str, torch.Tensor]
    generator: torch.Generator

    def __call__(self, split: str) -> tuple[torch.Tensor, torch.Tensor]:
        """The next inputs and targets, B x T."""
        ids = self.ids[split]
        places = torch.randint(len(ids) - CONTEXT, (BATCH,), generator=self.generator).tolist()
        languages = [int(torch.rand(1, generator=self.generator).item() >= 0.98) for _ in places]
        blocks = torch.stack([ids[place : place + CONTEXT + 1] for place in places])
        blocks += SYMBOLS * torch.tensor(languages)[:, None]
        return blocks[:, :-1], blocks[:, 1:]


def read_text(path: Path) -> dict[str, torch.Tensor]:
    """Ids of the characters, the last tenth for validation."""
    text = path.read_text()
    places = {symbol: i for i, symbol in enumerate(sorted(set(text)))}
    ids = torch.tensor([places[symbol] for symbol in text])
    return {"train": ids[: int(0.9 * len(ids))], "val": ids[int(0.9 * len(ids)) :]}


def loss_of(model: nn.Module, inputs: torch.Tensor, targets: torch.Tensor, loss: object = None) -> torch.Tensor:
    """The mean loss of a batch; without `loss`, its cross-entropy."""
    return OutputLoss(loss)(model(inputs), model.output_weight, targets)


def nearness(model: nn.Module) -> float:
    """Mean cosine of the embeddings of a character in the two languages."""
    table = model.output_weight.detach()
    return F.cosine_similarity(table[:SYMBOLS], table[SYMBOLS:]).mean().item()


@torch.no_grad()
def evaluate(model: nn.Module, ids: torch.Tensor) -> dict[str, dict[str, float]]:
    """Accuracy and perplexity of both languages, on consecutive blocks; a last incomplete batch is left out."""
    blocks = (len(ids) - 1) // CONTEXT // BATCH * BATCH
    inputs, targets = (ids[i : i + blocks * CONTEXT].view(-1, CONTEXT) for i in (0, 1))
    made = {}
    for language, shift in (("HR", 0), ("LR", SYMBOLS)):
        logits = torch.cat([model.logits(model(part + shift)) for part in inputs.split(BATCH)]).flatten(0, 1)
        expected = targets.flatten() + shift
        accuracy = (logits.argmax(1) == expected).double().mean().item()
        made[language] = {"accuracy": accuracy, "perplexity": F.cross_entropy(logits, expected).exp().item()}
    return made


def trained(model: nn.Module, batches: Batches, steps: int) -> nn.Module:
    """Train in place, with the authors' optimiser, schedule and validation, whose batches come from the same state."""
    matrices = [weights for weights in model.parameters() if weights.dim() == 2]
    others = [weights for weights in model.parameters() if weights.dim() < 2]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, betas=(0.9, 0.99))
    rate = Cosine(peak=1e-3, final=1e-4, warmup=100, steps=8000)
    batch = batches("train")
    for step in range(steps):
        if step % EVERY == 0:
            with torch.no_grad():
                seen = {s: sum(loss_of(model, *batches(s)).item() for _ in range(20)) / 20 for s in batches.ids}
            said = ", ".join(f"{split} {loss:.4f}" for split, loss in seen.items())
            print(f"step {step}: {said}, cosine {nearness(model):.3f}", flush=True)
        loss = loss_of(model, *batch, Threshold(margin=1.0))
        batch = batches("train")
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for group in optimiser.param_groups:
            group["lr"] = rate(step)
        optimiser.step()
        optimiser.zero_grad()
    return model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path, help="tiny Shakespeare, one file")
    parser.add_argument("--seed", type=int, default=1337, help="default: the authors', 1337")
    parser.add_argument("--initial", choices=KINDS, default="matrix", help="whose initial weights")
    parser.add_argument("--table", choices=KINDS, help="whose initial embedding matrix (default: that of --initial)")
    parser.add_argument("--batches", choices=KINDS, default="matrix", help="whose batches")
    parser.add_argument("--steps", type=int, default=STEPS, help="default: %(default)s, as the authors' script counts")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    model, _ = started(arguments.initial, arguments.seed)
    if arguments.table:
        model.output_weight.data.copy_(started(arguments.table, arguments.seed)[0].output_weight)
    generator = torch.Generator()
    generator.set_state(started(arguments.batches, arguments.seed)[1])
    ids = read_text(arguments.text)
    made = evaluate(trained(model, Batches(ids, generator), arguments.steps), ids["val"])
    print(json.dumps(made | {"cosine": nearness(model)}))


if __name__ == "__main__":
    main()
