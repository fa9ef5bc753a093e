"""Synthetic results folder of language models: every file that reporting reads for agg and agps.

Printed numbers are the truth that each seed is drawn around, so that tables and verdicts have known answers.
"""

import json
from pathlib import Path

import fake_translation
import numpy as np
from fake_results import PUBLISHED, raw_definition, write_run

from rarepapers.reporting.definition import Definition, Method, parse_definition
from rarepapers.reporting.results import printed_numbers

PAPERS = ("agg", "agps")
TRANSLATION = "translation"  # in the names of experiments of models that translate
GROUPS = {"agg": ("freq", "med", "rare"), "agps": ("high", "mid", "low")}
SUFFIX = {"agg": "@index", "agps": "@mass"}
TYPES, BOUNDS = 2000, (600, 1600)
# Training is 1/20 as long as the paper's; steps at which its methods end their freeze.
SCALE = 20
QUERY = "homepage"
SIMILARITY = ("MEN", "WS353", "RG65", "RW")
MASSES = {"test": (0.93, 0.068, 0.002), "train": (0.92, 0.075, 0.005), "valid": (0.91, 0.087, 0.003)}
ALPHAS = ("agg_a0.01", "agg_a0.02", "agg", "agg_a0.04", "agg_a0.05")


def definition_of(paper: str, scale: str = "small", seeds: int = 2, comparable: bool = False) -> dict:
    """The output of the command `definition` for a paper, the experiments of its methods, and their gates."""
    raw, config = raw_definition(paper, scale, seeds, comparable)
    every = list(config["experiments"])
    methods = config["methods"].items()
    return raw | {
        "trained": {name: method.get("experiments", every) for name, method in methods},
        "gates": {name: method.get("gate", {}) for name, method in methods},
    }


def write_results(folder: Path, raw: dict, only: str = "") -> list[Path]:
    """Write runs/ of a paper below `folder`; the paths of all metrics.json. only: part of the experiments' names."""
    definition = parse_definition(json.dumps(raw))
    truth = _truth(definition)
    paths = []
    for name, experiments in raw["trained"].items():
        for experiment in (experiment for experiment in experiments if only in experiment):
            for seed in definition.methods[name].seeds:
                if TRANSLATION in experiment:
                    method = _record(name, raw["gates"][name], np.random.default_rng(0))["settings"]["method"]
                    paths.append(fake_translation.write_run(folder, definition.paper, experiment, name, seed, method))
                    continue
                generator = np.random.default_rng([seed, *name.encode()])
                known = truth.get((experiment, definition.methods[name].printed_label), {})
                rows = list(_metrics(definition.paper, name, known, generator))
                about = {"paper": definition.paper, "experiment": experiment, "method": name, "seed": seed}
                made = _record(name, raw["gates"][name], generator)
                paths.append(write_run(folder, about, rows, arrays_of(name, generator), **made))
    return paths


def _record(name: str, gate: dict, generator: np.random.Generator) -> dict:
    derived = {}
    if gate.get("name") == "agg":
        derived = {"alpha": gate["alpha"] / 3, "memory": 412, "rare_types": 400}
    if gate.get("name") == "agps":
        derived = {"i_r": 1600, "mu_1": 10.25, "mu_2": 0.41}
    settings = {"method": {"gate": dict(gate)} if gate else {}, "training": {"threads": 1}}
    if gate.get("until"):
        settings["method"]["gate"]["until"] = gate["until"] // SCALE
    if name.startswith("ul"):
        settings["method"]["penalty"] = {"name": "unlikelihood"}  # alpha at its default is left out
    return {
        "hash": f"{generator.integers(2**63):016x}",
        "settings": settings,
        "derived": derived,
        "parameters": 41_559_552,
    }


def _labelled(definition: Definition, item: str) -> dict[str, Method]:
    if item not in definition.tables:
        return {}
    shown = definition.of(item)
    methods = (shown.methods[name] for name in definition.tables[item].get("methods", []))
    return {method.printed_label: method for method in methods}


def _truth(definition: Definition) -> dict[tuple[str, str], dict[tuple[str, str], float]]:
    """{(experiment, printed label): {(metric, group): printed value}}."""
    truth = {}
    human = {}
    for (item, row, column, group), number in printed_numbers(PUBLISHED, definition.paper).items():
        entry = definition.tables.get(item, {})
        if any(TRANSLATION in method.experiment for method in _labelled(definition, item).values()):
            continue
        if entry.get("kind") == "metrics":
            if row in entry.get("data", {}):
                human[entry["data"][row][column]["metric"], group] = number.value
                continue
            method = _labelled(definition, item)[row]
            metric = entry["columns"][column]["metric"]
        elif entry.get("kind") == "generated":
            method = _labelled(definition, item)[row]
            metric = "generated_uniq"
            group = f"example{entry['examples'][int(group[-1]) - 1]}"
        else:
            continue
        truth.setdefault((method.experiment, method.printed_label), {})[metric, group] = number.value
    for known in truth.values():
        known.update(human)
    return truth


def _metrics(paper: str, name: str, truth: dict, generator: np.random.Generator):
    groups = GROUPS[paper]
    values = _defaults(paper, name) | truth

    def noise():
        return 1 + 0.0003 * generator.normal()

    for split, shares in MASSES.items():
        for group, share in zip(groups, shares, strict=True):
            yield _row("group_mass", group, f"{split}@data", share)
            yield _row("group_mass", group + SUFFIX[paper], f"{split}@data", 1.01 * share)

    for (metric, group), value in values.items():
        ours = value if metric == "uniq_human" else value * noise()
        place = {
            "perplexity": "test@best",
            "uniq": "test@best",
            "uniq_human": "test@data",
            "generated_uniq": "test@best",
        }
        yield _row(metric, group, place.get(metric, "weights@best"), ours)
        again = group if group not in groups else group + SUFFIX[paper]
        if again != group:
            yield _row(metric, again, place.get(metric, "weights@best"), 1.01 * ours)
        if metric == "perplexity":
            for split, factor in (("test@best", 1.1), ("test@last", 1.12), ("valid@best", 1.05)):
                yield _row("perplexity_plain", group, split, factor * ours)
                if again != group:
                    yield _row("perplexity_plain", again, split, 1.01 * factor * ours)
        if metric in ("uniq", "isotropy_sign_free"):
            yield _row(metric, group, "test@last" if metric == "uniq" else "weights@last", 0.98 * ours)
        if metric == "isotropy_sign_free":
            for name, factor in (("lowest", 1.05), ("highest", 1.2), ("linalg_eig", 1.1)):
                yield _row(f"isotropy_{name}", group, "weights@best", factor * ours)


def _defaults(paper: str, name: str) -> dict[tuple[str, str], float]:
    first, second, third = GROUPS[paper]
    gated = name not in ("mle", "ul", "baseline", "cosreg", "freeze_c", "no_g1")
    found = {("perplexity", group): value for group, value in zip((first, second, third), (20, 250, 600), strict=True)}
    found |= {("perplexity", "total"): 30.0, ("uniq", first): 900.0, ("uniq", second): 400.0, ("uniq", third): 40.0}
    found |= {("uniq", "total"): 1300.0, ("isotropy_sign_free", "total"): 0.5, ("isotropy_sign_free", first): 0.5}
    found |= {("isotropy_sign_free", second): 0.4, ("isotropy_sign_free", third): 0.3}
    if name in ALPHAS:
        # As printed at the third alpha, which has the best perplexity; rare Uniq and I(W) rise up to it and fall.
        step = ALPHAS.index(name) - 2
        bend = (step - 0.2) ** 2 - 0.04
        found |= {("perplexity", "total"): 15.51 + 0.2 * abs(step), ("uniq", "total"): 13737.0 + 100 * step}
        found |= {("uniq", third): 345.0 - 40 * bend, ("isotropy_sign_free", third): 0.813 - 0.06 * bend}
        found |= {("isotropy_sign_free", "total"): 0.813 - 0.05 * step}
    found |= {("separability", "svd"): 0.7 if gated else 0.98, ("separability", "pca"): 0.6 if gated else 0.95}
    # Non-rare equals the printed total, because only a few thousandths of the tokens are rare.
    for metric in ("perplexity", "uniq", "isotropy_sign_free"):
        found[metric, "nonrare"] = 0.97 * found[metric, "total"]
    found |= {(f"word_similarity{what}_with_space", name): 0.5 for what in ("", "_coverage") for name in SIMILARITY}
    found |= {("singular_sum", "total"): 300.0 if gated else 120.0, ("rare_neighbours", third): 0.3 if gated else 0.9}
    found |= {("generated_uniq", "mean"): 45.0 if gated else 20.0}
    found |= {("word_similarity", name): 20.0 for name in SIMILARITY}
    found |= {("word_similarity_coverage", name): 0.8 for name in SIMILARITY}
    return found


def _row(metric: str, group: str, split: str, value: float) -> dict:
    return {"metric": metric, "group": group, "split": split, "value": float(value), "n": 245_569, "signature": "x:y"}


def arrays_of(name: str, generator: np.random.Generator, types: int = TYPES) -> dict[str, np.ndarray]:
    """The arrays of one run; groups of `types` types in the shares of BOUNDS."""
    bounds = [types * bound // TYPES for bound in BOUNDS]
    gated = name not in ("mle", "baseline", "cosreg")
    counts = (5e6 / np.arange(1, types + 1)).astype(np.int64)
    vocabulary = [f" w{k}" for k in range(types)]
    vocabulary[:8] = ["<s>", "\\xe2", "</s>", " the", "#&%$_^~{}\\", " naïve", " 東京", "|*`[<"]
    queries = np.array([bounds[1] + 3, bounds[1] + 7, bounds[1] + 11])
    vocabulary[queries[0]] = f" {QUERY}"
    shape = (len(queries), 5)
    arrays = {
        "vocabulary": np.array(vocabulary),
        "counts": counts,
        "bounds": np.array(bounds),
        "best.singular_values": 9 * np.exp(-np.arange(32) / (30 if gated else 4)),
        "best.neighbour_queries": queries,
        "best.neighbours": generator.integers(4, types, shape),
        "best.neighbour_cosines": np.sort(generator.uniform(0.2, 0.9, shape))[:, ::-1],
        "best.generated.prefixes": np.array([f"= A title {k} = \n the first of" for k in range(1, 6)]),
        "best.generated.texts": np.array([f"{name} wrote 100 % of it & more , " * 20 + "\x07" for _ in range(5)]),
    }
    for checkpoint in ("best", "last"):
        for plane in ("svd", "pca"):
            arrays[f"{checkpoint}.{plane}"] = _plane(bounds, types, 0.8 if gated else 6, 0, generator)
    if name in ("mle", "baseline"):
        shifts = ((0, 0), (5, 0), (9, 5), (12, 6))
        arrays["snapshots.steps"] = np.array([5, 25, 75, 175])
        for plane in ("svd", "pca"):
            arrays[f"snapshots.{plane}"] = np.stack([_plane(bounds, types, *shift, generator) for shift in shifts])
    if name.startswith("freeze_until"):
        arrays |= _along_training(int(name.removesuffix("k").rsplit("_", 1)[1]) * 1000 // SCALE, generator)
    if name == "agg":
        steps = np.arange(1, 1001)
        waves = 900 * np.exp(-steps / 80) * np.sin(steps / 5)
        arrays["rare_types.sizes"] = np.maximum(700 + waves + 5 * generator.normal(size=1000), 0).astype(np.int64)
    return arrays


def _plane(bounds: list[int], types: int, rare: float, medium: float, generator: np.random.Generator) -> np.ndarray:
    """Points of the three groups: the rare one `rare` away, the medium one `medium`."""
    points = generator.normal(size=(types, 2)) * [1, 0.8]
    points[bounds[1] :, 0] += rare
    points[bounds[0] : bounds[1], 1] += medium
    return points.astype(np.float32)


def _along_training(freeze: int, generator: np.random.Generator) -> dict[str, np.ndarray]:
    steps = np.arange(50, 2001, 50)
    since = np.maximum(steps - freeze, 0)
    noise = 1 + 0.002 * generator.normal(size=len(steps))
    rare, frequent = 0.2 + 0.6 * np.exp(-since / 60), 0.4 + 0.3 * np.exp(-since / 300)
    later = since / 2000
    return {
        "snapshots.steps": steps,
        "snapshots.isotropy_sign_free": np.stack([frequent, 0.9 * frequent, rare], 1) * noise[:, None],
        "snapshots.cosine_rare_frequent": 0.02 + 0.4 * later * noise,
        "snapshots.inner_product": np.stack([0.1 + later, 0.1 + 1.5 * later, 0.05 + 3 * later], 1) * noise[:, None],
        "rare_alignment.steps": steps,
        "rare_alignment.negative_share": np.where(since > 0, 0.97, 0.5) * noise,
        "rare_alignment.mean": np.where(since > 0, -1.5, 0.1),
    }
