"""Separated embeddings: the vector of each token is its own parameter (stop_jostling, 4.5; docs/deviations.md, S1).

The paper says that AdamW then skips tokens without gradient. The printed listing does not: every vector gets a gradient
of zeros, never None, so momentum and weight decay still move it. This gives three readings.
"""

from dataclasses import dataclass

from raretok.methods.parts import EmbeddingUpdate

READINGS = ("matrix", "listing", "skip")


@dataclass(frozen=True)
class Separated(EmbeddingUpdate):
    """How AdamW treats the rows of the embedding matrices.

    reading: `matrix`, as everywhere else; `listing`, as in Listing 2 and the authors' optimiser groups: equal to
    `matrix` when tied, and without weight decay on an untied output matrix; `skip`, as in the text: a row whose
    gradient is all zero is left alone, including its moments, decay and step count.
    """

    reading: str

    def __post_init__(self):
        if self.reading not in READINGS:
            raise ValueError(f"reading must be one of {', '.join(READINGS)}")

    @property
    def skips_rows(self) -> bool:
        """Whether rows without gradient are left alone."""
        return self.reading == "skip"

    @property
    def decays_untied_output(self) -> bool:
        """Whether an untied output matrix has weight decay; the authors' groups leave its vectors out."""
        return self.reading == "matrix"
