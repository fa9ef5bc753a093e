"""Text for the examples, made on the spot: a few types are frequent, most are rare, and each has a usual successor."""

import torch

TYPES = 300


def made_text(sequences: int, length: int = 32, seed: int = 0) -> torch.Tensor:
    """Token ids, sequences x length: half of them follow from the one before, the others have Zipf's frequencies."""
    generator = torch.Generator().manual_seed(seed)
    weights = 1 / torch.arange(1, TYPES + 1).double()
    drawn = torch.multinomial(weights, sequences * length, replacement=True, generator=generator)
    successors = torch.randperm(TYPES, generator=torch.Generator().manual_seed(1))
    follows = torch.rand(sequences, length, generator=generator) < 0.5
    ids = drawn.view(sequences, length)
    for place in range(1, length):
        ids[:, place] = torch.where(follows[:, place], successors[ids[:, place - 1]], ids[:, place])
    return ids
