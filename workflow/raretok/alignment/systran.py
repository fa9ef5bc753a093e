"""Word alignment by systran-align: fast_align's code as a library, with wheels that install everywhere."""

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from raretok.alignment.sentences import read_sentences
from raretok.errors import UserError

# The library puts both directions together by this rule alone.
SYMMETRISATION = "grow-diag-final-and"
# Where the library cuts its tables before it aligns, as the natural logarithm of the share of the likeliest
# translation's probability. fast_align aligns with whole tables; the library's own -4 changes a link in twenty.
CUT = -20.0
# fast_align -d -o -v: favour the diagonal, optimise its tension, variational Bayes; the rest are its defaults.
OPTIONS = {
    "iterations": 5,
    "favor_diagonal": True,
    "optimize_tension": True,
    "variational_bayes": True,
    "alpha": 0.01,
    "prob_align_null": 0.08,
    "beam_threshold": CUT,
}
# The library trains the diagonal's tension, but chooses links at its default, which its tables do not hold. fast_align
# chooses them at the trained one.
LINK_TENSION = 4.0
# Pairs aligned at a time.
PAIRS = 20_000


def align(source: Path, target: Path, joined: Path, folder: Path) -> Iterator[list[tuple[int, int]]]:
    """Symmetrised links of each pair: positions of source and target tokens, from 0, in their order.

    joined: both sides as `sentences.write_joined` writes them. folder: where tables of probabilities may lie meanwhile.
    One thread, since counts are sums of floating-point numbers. Raises UserError without the package.
    """
    # Read when the library is loaded: nobody else in this process loads it.
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        import systran_align
    except ImportError:
        raise UserError(
            "word alignment needs systran-align, or fast_align and atools on PATH; pip install systran-align"
        ) from None
    tables = [str(folder / name) for name in ("forward", "backward")]
    systran_align.generate_alignment_probabilities(str(joined), *tables, **OPTIONS)
    aligner = systran_align.Aligner(*tables)
    pairs = read_sentences(source, target)
    while part := list(islice(pairs, PAIRS)):
        for found in aligner.align_batch(*map(list, zip(*part, strict=True))):
            yield sorted(found["alignments"])
