"""The baseline to beat: one constant added to the logits of all rare types after training by maximum likelihood.

python examples/constant_for_rare_types.py
"""

import torch
from made_text import TYPES, made_text
from torch import nn

import raretok


class Model(nn.Module):
    """A recurrent language model; its forward pass returns what the output layer reads."""

    def __init__(self):
        super().__init__()
        self.embedding, self.body = nn.Embedding(TYPES, 64), nn.GRU(64, 64, batch_first=True)
        self.head = nn.Linear(64, TYPES)

    def forward(self, ids):
        return self.body(self.embedding(ids))[0]


def train(criterion: raretok.OutputLoss, texts: torch.Tensor) -> Model:
    torch.manual_seed(0)
    model = Model()
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for step in range(200):
        ids = texts[torch.randint(len(texts), (32,), generator=torch.Generator().manual_seed(step))]
        criterion(model(ids[:, :-1]), model.head.weight, ids[:, 1:], bias=model.head.bias).backward()
        optimiser.step()
        optimiser.zero_grad()
    return model.eval()


def main():
    texts, validation = made_text(1024), made_text(256, seed=7)
    counts = raretok.count_targets(texts[:, 1:], TYPES)
    groups = raretok.FrequencyGroups(counts)
    alpha = raretok.agg_alpha(counts, targets_per_step=32 * 31)

    def show(name, model):
        nll = raretok.token_nll(model(validation[:, :-1]), model.head.weight, validation[:, 1:], model.head.bias)
        found = groups.perplexity(nll, validation[:, 1:])
        print(f"{name:>12}" + "".join(f"{found[group]:10.1f}" for group in ("frequent", "medium", "rare", "total")))

    print(f"{'perplexity':>12}" + "".join(f"{group:>10}" for group in ("frequent", "medium", "rare", "total")))
    with torch.no_grad():
        model = mle(texts)
        show("MLE", model)
        # [constant]
        rare = groups.members()["rare"]
        for constant in (0.5, 1.0, 1.5, 2.0):
            model.head.bias[rare] += 0.5
            show(f"MLE + {constant}", model)
        # [end]
    show("AGG", train(raretok.OutputLoss(gate=raretok.AGG(alpha, memory=50), counts=counts), texts))


@torch.enable_grad()
def mle(texts):
    return train(raretok.OutputLoss(), texts)


if __name__ == "__main__":
    main()
