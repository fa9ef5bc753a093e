"""The most probable continuations of a sentence's hypotheses.

Shapes: B sentences, k hypotheses of each, V types, c candidates.
"""

import torch

# Maximum chunk size for a first look at the types, chosen so that it costs about one pass over memory.
LARGEST_CHUNK = 64
SMALLEST_CHUNK = 8


def best_continuations(
    log_probabilities: torch.Tensor, scores: torch.Tensor, number: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The `number` most probable continuations of each sentence's hypotheses, best first.

    log_probabilities: of each type after each hypothesis, B x k x V, overwritten. scores: of the hypotheses, B x k.
    Returns the continuations' log probabilities, the hypotheses that they continue (0 to k - 1) and their types, each
    B x c, with c = min(number, k V).
    """
    batch, _, types = log_probabilities.shape
    log_probabilities += scores[:, :, None]
    values, places = largest(log_probabilities.view(batch, -1), number)
    return values, places // types, places % types


def largest(values: torch.Tensor, number: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The `number` largest values of each row (B x n) in decreasing order, and their indices; all if n is less.

    A chunk whose maximum is not among the `number` largest maxima holds none of them, so only the other chunks are
    sorted. This is several times as fast as `topk` of the rows and gives the same values.
    """
    rows, columns = values.shape
    width = next((w for w in range(LARGEST_CHUNK, SMALLEST_CHUNK - 1, -1) if columns % w == 0), 1)
    if width == 1 or columns <= number * width:
        return values.topk(min(number, columns))
    chunks = values.view(rows, -1, width)
    chosen = chunks.amax(2).topk(number).indices
    candidates = chunks.gather(1, chosen[:, :, None].expand(-1, -1, width)).view(rows, -1)
    found, places = candidates.topk(number)
    return found, chosen.gather(1, places // width) * width + places % width
