"""Synthetic results of translation models: every file that reporting reads of a run, for all three papers.

The compared values have the papers' order, so that verdicts have known answers.
"""

import json
from pathlib import Path

import fake_results
import numpy as np
from fake_results import PUBLISHED, raw_definition

from rarepapers.__main__ import main
from rarepapers.reporting.claims.claims_command import judge_paper
from rarepapers.reporting.definition import parse_definition
from rarepapers.reporting.results import Results, read_results

PAPER = "natural_bias"
TYPES, BOUNDS = 1200, (360, 960)
STEPS = 1000  # steps of a training at the synthetic scale, 1/50 of natural_bias's
DOMAINS = ("newstest2014",)
WORDS = ("optimum", "criminal", "happiness")
# BLEU by method; other methods have the last value.
BLEU = {"unigram": 30.6, "zero": 30.0, "none": 29.9, "c4": 30.5, "transformer": 27.3, "translator": 27.3}
BLEU |= {"cosreg_translation": 28.4, "adversarial_translation": 28.4, "spectrum_translation": 28.4}
BLEU |= {"agg_translation": 28.9, "agps_translation": 28.8, "freeze_translation": 28.3}
OTHER_BLEU = 28.3
ALIGNED = {"translator": 0.005, "cosreg_translation": 0.05, "agps_translation": 0.11}
CORPORA = {"afromt_af-en": "autshumato_af-en", "afromt_run-en": "kirundi_run-en", "iwslt14_de-en": "multi30k_de-en"}
UNIGRAMS = {"multi30k_de-en": {"c4": "WikiText-2"}}
# Slope of calibration without the bias.
SLOPES = {"unigram": -0.3, "zero": 0.6}


def definition_of(scale: str = "small", seeds: int = 2, left_out: tuple[str, ...] = ()) -> dict:
    """What the command `definition` would say about natural_bias at a small scale, from the real config."""
    raw, config = raw_definition(PAPER, scale, seeds, comparable=False, scale_title=f"{scale} scale, made-up data")
    settings = {name: entry for name, entry in raw["settings"].items() if name not in left_out}
    for name, entry in settings.items():
        corpus = {"name": CORPORA.get(name, name)}
        settings[name] = entry | {"corpus": corpus, "training": entry["training"] | {"steps": STEPS}}
    for name, method in raw["methods"].items():
        trained = config["methods"][name].get("experiments", list(config["experiments"]))
        experiments = [experiment for experiment in trained if experiment in settings]
        method["trained"] = dict.fromkeys(experiments, method["seeds"])
    penalties = {name: method.get("penalty", {}) for name, method in config["methods"].items()}  # not read
    return raw | {"settings": settings, "penalties": penalties, "unigrams": UNIGRAMS}


def write_results(folder: Path, raw: dict) -> list[Path]:
    """Write runs/ of natural_bias below `folder`; the paths of all metrics.json."""
    return [
        write_run(folder, PAPER, experiment, name, seed, {"penalty": raw["penalties"][name]})
        for name, method in raw["methods"].items()
        for experiment in method["trained"]
        for seed in method["seeds"]
    ]


def collected(folder: Path, raw: dict) -> Results:
    """The results of natural_bias, written below `folder` and collected."""
    paths = write_results(folder, raw)
    assert main(["collect", "--metrics", *map(str, paths), "--output", str(folder / "metrics.csv")]) == 0
    return read_results(folder)


def verdicts_of(raw: dict, results: Results) -> dict[str, dict]:
    """The row of claims.csv of each claim of natural_bias, by its id without the paper."""
    rows = judge_paper(parse_definition(json.dumps(raw)), results, PUBLISHED)
    return {row["id"].removeprefix(f"{PAPER}."): row for row in rows}


def write_run(folder: Path, paper: str, experiment: str, name: str, seed: int, method: dict) -> Path:
    """One run; the path of its metrics.json. method: its parts in the record of training."""
    generator = np.random.default_rng([seed, *f"{experiment}/{name}".encode()])
    arrays = arrays_of(name, generator)
    about = {"paper": paper, "experiment": experiment, "method": name, "seed": seed}
    about["hash"] = f"{generator.integers(2**63):016x}"
    rows = list(metrics_of(name, arrays, generator))
    return fake_results.write_run(
        folder,
        about,
        rows,
        arrays,
        settings={"method": method, "training": {"steps": STEPS, "threads": 1}},
        derived={"i_r": BOUNDS[1], "mu_1": 15.0, "mu_2": 4.0} if name.startswith("agps") else {"alpha": 0.027},
        parameters=64_800_000,
        steps=STEPS,
    )


def metrics_of(name: str, arrays: dict, generator: np.random.Generator):
    """Rows of metrics.json, by the names of rarepapers/evaluation/translation.py."""
    level = BLEU.get(name, OTHER_BLEU) + 0.01 * generator.normal()
    for split, value in (("test@best", level), *((f"domain.{domain}@best", level / 3) for domain in DOMAINS)):
        # A start from another text improves out-of-domain scores.
        value += 1.0 if name == "c4" and split != "test@best" else 0.0
        yield _row("bleu", "", split, value)
        yield _row("chrf", "", split, 1.8 * value)
    yield _row("bleu_tokenised", "", "test@best", level + 0.4)
    steps, values = arrays["curve.bleu.steps"], arrays["curve.bleu.values"]
    for metric, factor in (("bleu", 1.0), ("chrf", 1.8)):
        yield _row(f"alc_{metric}", "early", "valid", factor * values[steps <= 0.4 * STEPS].mean())
        yield _row(f"alc_{metric}", "full", "valid", factor * values.mean())
        yield _row(f"best_validation_{metric}", "", "valid", factor * values.max())
    for metric in ("calibration_slope", "calibration_token_slope"):
        yield _row(metric, "full", "test@best", 0.8 + 0.01 * generator.normal())
        yield _row(metric, "without_bias", "test@best", SLOPES.get(name, 0.5) + 0.01 * generator.normal())
    gated = name not in ("transformer", "translator", "cosreg_translation")
    similar = ALIGNED.get(name, 0.1) + 0.0005 * generator.normal()
    for group in ("high", "mid", "low", "total"):
        yield _row("align_similarity", group, "weights@best", similar)
        yield _row("align_similarity_skipped", group, "weights@best", 41)
    cosine = {"translator": 0.53, "freeze_translation": 0.02}.get(name, 0.2) + 0.001 * generator.normal()
    yield _row("mean_cosine", "total", "weights@best", cosine)
    # Seeds differ slightly, because equal seeds decide nothing.
    separable = (0.6 if gated else 0.97) + 0.001 * generator.spawn(1)[0].normal()
    yield _row("separability", "pca", "weights@best", separable)
    yield _row("neighbours_other_language", "", "weights@best", 0.4 if gated else 0.0)
    for word in WORDS:
        rho = (0.02 if gated else 0.5) + 0.005 * generator.normal()
        yield _row("cosine_rank_correlation", f"▁{word}", "weights@best", rho)


def _row(metric: str, group: str, split: str, value: float) -> dict:
    return {"metric": metric, "group": group, "split": split, "value": float(value), "n": 1000, "signature": "x:y"}


def arrays_of(name: str, generator: np.random.Generator) -> dict[str, np.ndarray]:
    """The arrays of one run, by the names of rarepapers/evaluation/translation_run.py."""
    gated = name not in ("transformer", "translator", "cosreg_translation")
    counts = (2e5 / np.arange(1, TYPES + 1)).astype(np.int64)
    # Every second type belongs to the source side only.
    source = np.where(np.arange(TYPES) % 2 == 0, 3 * counts, 0)
    counts = np.where(np.arange(TYPES) % 2 == 0, 0, counts)
    counts[:4] = [0, 0, 5000, 3]
    queries = np.array([401, 601, 801])
    vocabulary = [f"▁w{k}" for k in range(TYPES)]
    vocabulary[:4] = ["<s>", "<pad>", "</s>", "<unk>"]
    for query, word in zip(queries, WORDS, strict=True):
        vocabulary[query] = f"▁{word}"
    neighbours = np.stack([np.arange(5, 15, 2) + 10 * k for k in range(len(queries))])
    if gated:
        neighbours[:, 2] += 1
    if name == "cosreg_translation":
        for row, word in zip(neighbours, WORDS, strict=True):
            for k, ending in enumerate(("al", "ize")):
                vocabulary[row[k]] = f"{word[:4]}{ending}"
    cosines = generator.normal(0.1, 0.08, (len(queries), TYPES)) + (0 if gated else np.linspace(-0.2, 0.4, TYPES))
    arrays = {
        "vocabulary": np.array(vocabulary),
        "counts": counts,
        "source_counts": source,
        "bounds": np.array(BOUNDS),
        "best.neighbour_queries": queries,
        "best.neighbours": neighbours,
        "best.neighbour_cosines": np.sort(generator.uniform(0.2, 0.9, neighbours.shape))[:, ::-1],
        "best.query_cosines": np.clip(cosines, -1, 1).astype(np.float32),
        "best.pca": _plane(2.5 if gated else 7, 3.0 if name == "freeze_translation" else 1.0, generator),
        "best.svd": _plane(2.5, 1.0, generator),
        "best.singular_values": np.exp(-np.arange(32) / 9),
    }
    arrays |= _curves(name, generator) | _calibration(name, generator) | _distributions(name, generator)
    if name == "translator":
        arrays["snapshots.steps"] = np.array([5, 25, 100, 500])
        arrays["snapshots.pca"] = np.stack([_plane(shift, 1.0, generator) for shift in (0, 6, 9, 12)])
    if name == "freeze_until_8k_translation":
        arrays |= _after_freeze(400, generator)
    return arrays


def _plane(rare: float, width: float, generator: np.random.Generator) -> np.ndarray:
    points = width * generator.normal(size=(TYPES, 2)) * [1, 0.8]
    points[BOUNDS[1] :, 0] += rare
    return points.astype(np.float32)


def _curves(name: str, generator: np.random.Generator) -> dict[str, np.ndarray]:
    steps = np.arange(20, STEPS + 1, 20)
    slow = {"unigram": 110.0, "c4": 115.0, "zero": 160.0, "none": 165.0}.get(name, 140.0)
    values = BLEU.get(name, OTHER_BLEU) * (1 - np.exp(-steps / slow)) * (1 + 0.004 * generator.normal(size=len(steps)))
    pairs = (("bleu", values), ("chrf", 1.8 * values))
    return {f"curve.{metric}.{key}": array for metric, of in pairs for key, array in (("steps", steps), ("values", of))}


def _calibration(name: str, generator: np.random.Generator) -> dict[str, np.ndarray]:
    places = np.linspace(-13, -3, 20)
    numbers = np.exp(np.linspace(0, 8, 20)).astype(np.int64)
    numbers[1] = 0
    noise = 0.3 * generator.normal(size=(2, 20))
    heights = {"full": -1 + 0.8 * (places + 3), "without_bias": -4 + SLOPES.get(name, 0.5) * (places + 3)}
    empty = np.where(numbers > 0, 0, np.nan)
    found = {part: of + wave + empty for (part, of), wave in zip(heights.items(), noise, strict=True)}
    found |= {"edges": np.linspace(-13.3, -2.7, 21), "numbers": numbers, "places": places + empty}
    return {f"best.calibration.{key}": array for key, array in found.items()}


def _distributions(name: str, generator: np.random.Generator) -> dict[str, np.ndarray]:
    steps = np.array([0, 1, 2, 4, 10, 20, 40, 100, 200, 400, 1000])
    noise = 1 + 0.01 * generator.normal(size=len(steps))
    unigram = 2.6 * np.exp(-steps / 6) + 0.4 + 2.2 * (1 - np.exp(-steps / 300))
    found = {
        "divergence.steps": steps,
        "divergence.unigram": unigram * noise,
        "divergence.uniform": (0.6 + 2 * (1 - np.exp(-steps / 80))) * noise,
        "divergence.empirical": (9 - 6 * (1 - np.exp(-steps / 150))) * noise,
    }
    if name in ("zero", "unigram", "c4"):
        steps = np.arange(0, STEPS + 1, 10)
        grown = (1 - np.exp(-steps / 300)) * (1 + 0.02 * generator.spawn(1)[0].normal())
        start, norm = (2.4, 0.0) if name == "zero" else (0.0, 400.0)
        found |= {
            "output_bias.steps": steps,
            "output_bias.norm": norm + 2 * grown,
            "output_bias.divergence": np.abs(start - 0.03 * grown),
        }
    return found


def _after_freeze(freeze: int, generator: np.random.Generator) -> dict[str, np.ndarray]:
    steps = np.arange(10, STEPS + 1, 10)
    later = np.maximum(steps - freeze, 0) / STEPS
    noise = 1 + 0.002 * generator.normal(size=len(steps))
    return {
        "snapshots.steps": steps,
        "snapshots.inner_product": np.stack([0.1 + later, 0.1 + 1.5 * later, 0.05 + 3 * later], 1) * noise[:, None],
        "rare_alignment.steps": steps,
        "rare_alignment.negative_share": np.where(later > 0, 0.97, 0.5) * noise,
        "rare_alignment.mean": np.where(later > 0, -1.5, 0.1),
    }
