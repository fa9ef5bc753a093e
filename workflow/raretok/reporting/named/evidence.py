"""What claims about figures and proofs are judged on.

A claim's function takes an Evidence and returns the truth per seed (predicates.Truth: does it hold, its signed
slack), the slack that the paper's own printed numbers have (None where it prints none) and a note on what was
measured. `CLAIMS` of a paper's module names the functions by the claims' ids.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from raretok.reporting.definition import Definition
from raretok.reporting.predicates import Missing, Truth
from raretok.reporting.results import Printed, Results

Found = tuple[dict[int, Truth], float | None, str]
NEEDS_TRANSLATION = "needs the translation experiments"


@dataclass(frozen=True)
class Evidence:
    """What claims are judged on: a paper's definition, the results of a scale, the printed numbers."""

    definition: Definition
    results: Results
    printed: dict[tuple, Printed]

    def of(self, item: str) -> "Evidence":
        """The evidence of a table or figure, with its methods in the experiment that it names."""
        if item not in self.definition.tables and item not in self.definition.figures:
            raise Missing(f"{item} is not made")
        return replace(self, definition=self.definition.of(item))

    def metric(self, method: str, metric: str, group: str = "", split: str | None = None) -> dict[int, float]:
        """Values by seed of the evaluated checkpoint; raises Missing."""
        values = self.results.per_seed(self.definition.method(method), metric, group, split=split)
        if not values:
            raise Missing(f"{method} was not run ({metric} {group})".replace(" )", ")"))
        return values

    def array(self, method: str, key: str) -> dict[int, np.ndarray]:
        """One array by seed; raises Missing."""
        pairs = self.results.seeds_with_arrays(self.definition.method(method))
        values = {seed: arrays[key] for seed, arrays in pairs if key in arrays}
        if not values:
            raise Missing(f"{method} was not run (array {key})")
        return values

    def training(self, method: str) -> dict:
        """The record of a method's training, which tells its settings; raises Missing."""
        record = self.results.training(self.definition.method(method))
        if record is None:
            raise Missing(f"{method} was not run")
        return record

    def per_seed(self, judge: Callable[..., Truth], *values: dict) -> dict[int, Truth]:
        """`judge` of the values of each seed that all have; raises Missing where there is none."""
        seeds = sorted(set.intersection(*(set(of_seed) for of_seed in values)))
        if not seeds:
            raise Missing("no seed was run for all the methods compared")
        return {seed: judge(*(of_seed[seed] for of_seed in values)) for seed in seeds}


def translation(evidence: Evidence) -> Found:
    """A claim that only translation models can answer."""
    raise Missing(NEEDS_TRANSLATION)
