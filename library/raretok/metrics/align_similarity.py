"""AlignSim: agreement of embedding similarity with word alignment (agps, Eqs. 16-17).

The model's vector of type i is ahat(i), the softmax over all j (including i, as printed; deviations, G10) of
tau cos(w_i, w_j). The pseudo-gold vector a(i) counts the links of i and j. AlignSim_i = cos(a(i), ahat(i)).

The cosine does not depend on the softmax's normaliser, so with e_ij = exp(tau cos_ij)

    AlignSim_i = sum_j a_ij e_ij / (|a(i)| sqrt(sum_j e_ij^2)).

With i itself counted, e_ii = exp(tau) outweighs all others as soon as the rows spread out, and AlignSim_i becomes
a_ii / |a(i)|: how often a type is linked with itself, whatever the model. `itself=False` leaves i out of both vectors.

Both e and a are symmetric, so half of the N x N products are computed, in stripes of rows with at most `CELLS` entries.
"""

import numpy as np
import torch

from raretok.metrics.co_occurrences import CoOccurrences
from raretok.metrics.mean_similarity import unit_rows

TAU = 10.0
# Products in memory at a time, in float32. With more, allocation costs as much as the exponentials.
CELLS = 2**22


def align_similarity(
    embeddings: np.ndarray,
    gold: CoOccurrences,
    tau: float = TAU,
    device: str = "cpu",
    cells: int = CELLS,
    itself: bool = True,
) -> np.ndarray:
    """AlignSim of each of the N types, (N,) float64; NaN for types without a link.

    embeddings: W, N x d. gold: the counts a. tau: of the softmax (printed 10^1; docs/deviations.md, G9). itself:
    whether i is an entry of its own vectors, as printed. float32 products, float64 sums: at tau = 10 the result is
    within 10^-5 of the dense form in float64, relative.
    """
    unit = torch.from_numpy(unit_rows(embeddings).astype(np.float32)).to(device)
    types = len(unit)
    linked, squares = np.zeros(types), torch.zeros(types, dtype=torch.float64, device=device)
    start = 0
    while start < types:
        stop = min(types, start + max(1, cells // (types - start)))
        # exp(tau (cos - 1)): a common factor of a row does not change the cosine, and keeps a large tau finite.
        stripe = (unit[start:stop] @ unit[start:].T).sub_(1).mul_(tau).exp_()
        if not itself:
            stripe[:, : stop - start].fill_diagonal_(0)
        part = slice(*np.searchsorted(gold.first, [start, stop]))
        first, second, counts = gold.first[part], gold.second[part], gold.counts[part]
        here = torch.from_numpy(first - start).to(device), torch.from_numpy(second - start).to(device)
        terms = counts * stripe[here].double().cpu().numpy()
        linked += np.bincount(first, weights=terms, minlength=types)
        other = first != second
        linked += np.bincount(second[other], weights=terms[other], minlength=types)
        stripe.square_()
        squares[start:stop] += stripe.sum(1, dtype=torch.float64)
        # By symmetry, the columns right of the stripe's square also count for the rows below it.
        squares[stop:] += stripe[:, stop - start :].sum(0, dtype=torch.float64)
        start = stop
    lengths = gold.squared_lengths(itself)
    has_links = lengths > 0
    similarity = np.full(types, np.nan)
    scale = np.sqrt(lengths[has_links] * squares.cpu().numpy()[has_links])
    similarity[has_links] = linked[has_links] / scale
    return similarity
