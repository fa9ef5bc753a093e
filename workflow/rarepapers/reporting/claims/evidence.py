"""Evidence for claims about figures and proofs.

A claim's function takes an Evidence and returns three values: the truth per seed (truths.Truth: whether it holds, its
signed slack, the parts of a conjunction); the truth or slack on the printed numbers, None if the paper prints none; and
a note on what was measured. The slack, relative to `null` in config/papers/<paper>/claims.csv, is the claim's quantity;
a `margin` there is the amount by which a slack may be negative. The function is named after the claim's id:
`f1_rare_first` for `agg.f1.rare_first`. `FIXED` in a paper's module lists the claims that no training seed decides:
those on formulas, and those in which a paper only reports numbers. `random_numbers` gives for a printed row which
random numbers the paper trained it with; without it, all rows of a paper have the same.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from rarepapers.core.code_digest import claims_module, file_of
from rarepapers.reporting.claims.jackknife import mean_of, shares
from rarepapers.reporting.claims.quantities import comparisons, of_this_scale
from rarepapers.reporting.claims.table_claims import common_seeds, measured
from rarepapers.reporting.claims.truths import Missing, Truth, all_of, greater, naming_seeds, of_seed
from rarepapers.reporting.definition import Definition
from rarepapers.reporting.results import Printed, Results

Found = tuple[dict[int, Truth], Truth | float | None, str]


class Partial(dict):
    """Truths by seed of a claim about several data sets, of which some are missing; they decide nothing."""


@dataclass(frozen=True)
class Evidence:
    """Evidence for claims: a paper's definition, the results of a scale, the printed numbers.

    claims: the rows of the paper's claims.csv, by id.
    """

    definition: Definition
    results: Results
    printed: dict[tuple, Printed]
    claims: dict[str, object] = field(default_factory=dict)

    def of(self, item: str) -> "Evidence":
        """The evidence of a table or figure, with its methods in its experiment; raises Missing."""
        if item not in self.definition.tables and item not in self.definition.figures:
            raise Missing(f"{item} is not made")
        return replace(self, definition=self.definition.of(item))

    def within(self, experiment: str) -> "Evidence":
        """The evidence of one experiment; raises Missing if the scale leaves it out."""
        if experiment not in self.definition.settings:
            raise Missing(f"{experiment} is left out at this scale")
        return replace(self, definition=self.definition.within(experiment))

    def metric(self, method: str, metric: str, group: str = "", split: str | None = None) -> dict[int, float]:
        """Values by seed of the evaluated checkpoint; raises Missing."""
        values = self.results.per_seed(self.definition.methods[method], metric, group, split=split)
        if not values:
            raise Missing(f"{method} was not run ({metric} {group})".replace(" )", ")"))
        return values

    def array(self, method: str, key: str) -> dict[int, np.ndarray]:
        """One array by seed; raises Missing."""
        pairs = self.results.seeds_with_arrays(self.definition.methods[method])
        values = {seed: arrays[key] for seed, arrays in pairs if key in arrays}
        if not values:
            raise Missing(f"{method} was not run (array {key})")
        return values

    def training(self, method: str) -> dict:
        """The training record of a method, which holds its settings; raises Missing."""
        record = self.results.training(self.definition.methods[method])
        if record is None:
            raise Missing(f"{method} was not run")
        return record

    def tables(self, *claims: str) -> dict[int, Truth]:
        """The joint truth of claims about tables, as signs, since their units differ; raises Missing."""
        asked = [comparisons(self.claims[claim].quantity) for claim in claims]
        found = [one for of_claim in asked for one in of_this_scale(of_claim, self.definition)]
        keys = list(dict.fromkeys(key for one in found for key in one.keys))

        def judge(*values):
            numbers = dict(zip(keys, values, strict=True))
            return all_of(greater(*(sum(numbers[key] for key in side) for side in one)) for one in found)

        return self.of_means(judge, *(measured(self.definition, self.results, key) for key in keys))

    def per_seed(self, judge: Callable[..., Truth], *values: dict) -> dict[int, Truth]:
        """`judge` on the values of each common seed, for quantities of single runs; raises Missing if there is none."""
        return {seed: of_seed(seed, judge, *(of[seed] for of in values)) for seed in common_seeds(values)}

    def of_means(self, judge: Callable[..., Truth], *values: dict[int, float]) -> dict[int, Truth]:
        """`judge` on the means over the seeds that all have; raises Missing if there is none."""
        return shares(
            common_seeds(values), lambda seeds: naming_seeds(judge, values, *(mean_of(of, seeds) for of in values))
        )


def of_paper(paper: str, name: str):
    """The object with this name (a claim's, `FIXED`, `BESIDE`, `random_numbers`, ...) in a paper's module, or {}."""
    module = claims_module(paper)
    return getattr(importlib.import_module(module), name, {}) if file_of(module) else {}
