"""Synthetic results folder of a scale: every file that reporting reads, with plausible numbers.

Printed numbers are the truth that each seed is drawn around, so that tables and verdicts have known answers.
"""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from rarepapers.__main__ import main
from rarepapers.data.catalogue import corpus_title, load_corpora, load_datasets
from rarepapers.metrics.clusters import mask_cosines
from rarepapers.metrics.neighbours import nearest_to
from rarepapers.metrics.projection import relative_translation_distance
from rarepapers.reporting.cost import costs
from rarepapers.reporting.definition import parse_definition
from rarepapers.reporting.results import printed_numbers

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "config" / "papers"
# Display names in the real catalogue.
_CATALOGUE = load_corpora(PUBLISHED.parent / "corpora.yaml"), load_datasets(PUBLISHED.parent / "datasets.yaml")
TITLES = {name: corpus_title(*_CATALOGUE, name) for names in _CATALOGUE for name in names}
SYMBOLS = sorted("\n !$&',-.3:;?" + "ABCDEFGHIJKLMNOPQRSTUVWXYZ" + "abcdefghijklmnopqrstuvwxyz")
TEMPERATURES = np.arange(1, 201) / 100


def write_cost(folder: Path) -> None:
    """`cost.csv` of the runs in a results folder."""
    with_header = costs(sorted(folder.glob("runs/*/*/*/metrics.json")))
    with_header.to_csv(folder / "cost.csv", index=False)


SCALES = {"small": "small scale, real data", "smoke": "smoke scale, synthetic data", "paper": "published scale"}


def raw_definition(paper: str, scale: str, seeds: int, comparable: bool, **changes) -> tuple[dict, dict]:
    """The output of the command `definition` for a paper, from the real config; and that config."""
    config = yaml.safe_load((PUBLISHED / paper / "paper.yaml").read_text(encoding="utf-8"))
    experiments = list(config["experiments"])
    methods = {
        name: {
            "label": method["label"],
            "experiment": method.get("experiments", experiments)[0],
            "seeds": list(range(1, seeds + 1)),
        }
        for name, method in config["methods"].items()
    }
    raw = {"paper": paper, "title": config["title"], "scale": scale, "scale_title": SCALES[scale]}
    raw |= {"comparable": comparable, "methods": methods, "settings": config["experiments"]}
    raw |= {key: config[key] for key in ("tables", "figures", "gpt2", "abbreviations") if key in config}
    return raw | {"titles": TITLES} | changes, config


def definition_of(scale: str = "small", seeds: int = 2, comparable: bool = True) -> dict:
    """The output of the command `definition` for stop_jostling."""
    return raw_definition("stop_jostling", scale, seeds, comparable)[0]


def write_run(folder: Path, about: dict, metrics: list[dict], arrays: dict[str, np.ndarray], **training) -> Path:
    """One run below `folder`, by its `about` (paper, experiment, method, seed, hash); the path of its metrics.json."""
    record = {
        **{"data": "d" * 64, "steps": 2000, "seconds": 60.0, "tokens": 1_000_000, "peak_memory_gib": 0.5},
        **{"resumes": 0, "device": "made up", "versions": {"raretok": "0.1.0", "torch": "0.0"}},
        "commit": "0123456789ab",
    }
    run = folder / "runs" / about["experiment"] / about["method"] / f"seed{about['seed']}"
    run.mkdir(parents=True)
    content = {"training": record | about | training, "metrics": metrics}
    (run / "metrics.json").write_text(json.dumps(content), encoding="utf-8")
    np.savez(run / "arrays.npz", **arrays)
    (run / "history.csv").write_text("step,split,loss\n", encoding="utf-8")
    return run / "metrics.json"


def write_results(folder: Path, definition: dict) -> list[Path]:
    """Write runs/ and gpt2/ below `folder`; the paths of all metrics.json."""
    printed = _truth(definition)
    paths = []
    for name, method in definition["methods"].items():
        label = parse_definition(json.dumps(definition)).methods[name].printed_label
        # A method without printed numbers has those of the first one.
        truth = printed.get(label, next(iter(printed.values())))
        for seed in method["seeds"]:
            generator = np.random.default_rng([seed, *name.encode()])
            arrays = _arrays(name, truth, generator)
            metrics = list(_metrics(name, truth, arrays, generator))
            about = {"paper": "stop_jostling", "experiment": "shakespeare", "method": name, "seed": seed}
            about |= {"hash": f"{generator.integers(2**63):016x}", "settings": {"training": {"threads": 2}}}
            made = {"steps": 8000, "tokens": 6_144_000, "peak_memory_gib": 1.5, "resumes": int(seed == 2)}
            paths.append(write_run(folder, about, metrics, arrays, **made, device="made up <b>&"))
    for row, model in definition["gpt2"]["models"].items():
        measured = {
            "name": row,
            "width": model["width"],
            "vocabulary": 50257,
            "random_init": [
                {
                    "seed": seed,
                    "margin": (0.0184 + 0.0001 * seed) * model["width"],
                    "margin_sigma": 0.02,
                    "alpha": 0.95 + 0.001 * seed,
                    "alpha_sigma": 0.001,
                }
                for seed in definition["methods"]["baseline"]["seeds"]
            ],
            "pretrained": None,
            "reason": "no checkpoint: gpt2_weights is skip",
        }
        path = folder / "gpt2" / f"{model['repository']}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(measured), encoding="utf-8")
    return paths


def _truth(definition: dict) -> dict[str, dict[tuple[str, str], float]]:
    """{label: {(metric, group): printed value}} over all tables of metrics."""
    numbers = printed_numbers(PUBLISHED, "stop_jostling")
    truth = {}
    for (item, row, column, group), number in numbers.items():
        entry = definition["tables"].get(item, {})
        if entry.get("kind") == "metrics":
            truth.setdefault(row, {})[entry["columns"][column]["metric"], group] = number.value
    return truth


def _metrics(name: str, truth: dict, arrays: dict, generator: np.random.Generator):
    for checkpoint in ("best", "last"):
        for (metric, group), value in truth.items():
            place = "weights" if metric == "isotropy_sign_free" else "valid"
            if metric == "best_temperature":
                value = TEMPERATURES[np.nanargmin(arrays[f"{checkpoint}.perplexity.{group}"])]
            elif np.isfinite(value):
                value = float(value * (1 + 0.004 * generator.normal()))
            else:
                value = "inf"
            yield _row(metric, group, f"{place}@{checkpoint}", value)
        softened = 0.0 if name == "baseline" else 0.02
        for group in ("HR", "LR"):
            for metric, value in (("tail_mass", 0.08), ("target_probability", 0.4), ("mean_rank", 3.0)):
                sign = {"tail_mass": 1, "target_probability": -1, "mean_rank": -1}[metric]
                yield _row(metric, group, f"valid@{checkpoint}", value + sign * softened + 0.001 * generator.normal())
        means = mask_cosines(arrays[f"{checkpoint}.embeddings"], SYMBOLS)
        for group, (mean, _) in means.items():
            yield _row("mask_cosine", group, f"weights@{checkpoint}", mean)
        plane = arrays[f"{checkpoint}.pca"]
        distance = float(np.linalg.norm(plane[:65] - plane[65:], axis=1).mean())
        yield _row("pca_distance", "", f"weights@{checkpoint}", distance)
        yield _row("pca_distance_relative", "", f"weights@{checkpoint}", relative_translation_distance(plane))
        # Seeds differ slightly, because equal seeds decide nothing.
        related = (10.0 if name == "threshold_m0.6_se" else 1.0) + 0.01 * generator.spawn(1)[0].normal()
        yield _row("related_neighbours", "Aa", f"weights@{checkpoint}", related)
        yield _row("related_neighbours", "letters", f"weights@{checkpoint}", related / 12)


def _row(metric: str, group: str, split: str, value) -> dict:
    n = 111_540
    return {"metric": metric, "group": group, "split": split, "value": value, "n": n, "signature": "made:up"}


def _arrays(name: str, truth: dict, generator: np.random.Generator) -> dict[str, np.ndarray]:
    counts = np.sort((150_000 * np.arange(1, 66.0) ** -1.6).astype(int) + 1)[::-1]
    counts = counts[np.random.default_rng(7).permutation(65)]
    arrays = {
        "temperatures": TEMPERATURES,
        "counts": counts,
        "symbols": np.array([ord(symbol) for symbol in SYMBOLS]),
    }
    for checkpoint in ("best", "last"):
        for group in ("HR", "LR"):
            best = truth.get(("best_temperature", group), 1.0)
            lowest = truth.get(("best_perplexity", group), 20.0)
            lowest = lowest if np.isfinite(lowest) else 30.0
            arrays[f"{checkpoint}.perplexity.{group}"] = lowest * np.exp(2.2 * np.log(TEMPERATURES / best) ** 2)
        arrays[f"{checkpoint}.embeddings"] = embeddings = _embeddings(name, counts, generator)
        ids, cosines = nearest_to(embeddings, np.arange(len(embeddings)), 3)
        arrays[f"{checkpoint}.neighbours"], arrays[f"{checkpoint}.neighbour_cosines"] = ids, cosines
        centred = embeddings - embeddings.mean(0)
        arrays[f"{checkpoint}.pca"] = centred @ np.linalg.svd(centred, full_matrices=False)[2][:2].T
    logits = 3.5 * np.random.default_rng(3).normal(size=(16, 130))
    logits[:, 65:] -= 6
    targets = logits[:, :65].argmax(1)
    targets[:2] = (targets[:2] + 1) % 65
    if name != "baseline":
        logits = np.maximum(logits, logits.max(1, keepdims=True) - 6)
    logits += 0.3 * generator.normal(size=logits.shape)
    logits[np.arange(16), targets] += 3
    distribution = np.exp(logits - logits.max(1, keepdims=True))
    arrays["best.examples.HR"] = distribution / distribution.sum(1, keepdims=True)
    arrays["best.example_targets.HR"] = targets
    if name in ("baseline", "threshold_m2"):
        rank = np.argsort(np.argsort(-counts, kind="stable"), kind="stable")
        # 51 frequent characters above 1, 14 below, as in the paper; the proposed method 12% higher
        ratio = np.where(rank < 51, 1.05 + 1.2 * (50 - rank) / 50, 0.95 - 0.9 * (rank - 51) / 14)
        gain = 1.0 if name == "baseline" else 1.12
        noise = np.exp(0.01 * generator.normal(size=130))
        arrays["gradients.ratio_of_average"] = np.tile(gain * ratio, 2) * noise
        share = 0.7 * np.tile(np.exp(-rank / 40), 2)
        arrays["gradients.average_of_ratio"] = share * (1.0 if name == "baseline" else 1.45) * noise
        arrays["gradients.average_of_ratio_dropped"] = arrays["gradients.average_of_ratio"] * (
            1.0 if name == "baseline" else 1.05
        )
    return arrays


def _embeddings(name: str, counts: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Unrelated rows with one shared direction for rare ones; related rows for the separated embeddings."""
    kinds = np.array([0 if not symbol.isalpha() else 1 + symbol.isupper() for symbol in SYMBOLS])
    cluster = np.random.default_rng(5).normal(size=(3, 32))
    letters = {symbol.lower(): generator.normal(size=32) for symbol in SYMBOLS}
    rows = np.stack([0.7 * cluster[kind] for kind in kinds])
    own = np.stack([letters[symbol.lower()] for symbol in SYMBOLS])
    if name == "threshold_m0.6_se":
        both = np.concatenate([rows + own, rows + own])
        return both + 0.7 * generator.normal(size=both.shape)
    pushed = 4 * np.random.default_rng(6).normal(size=32) * np.linspace(0.8, 1, 65)[:, None]
    high = rows + 0.5 * own + generator.normal(size=rows.shape)
    return np.concatenate([high, pushed + 0.8 * generator.normal(size=rows.shape)])


def read_csv(path: Path) -> pd.DataFrame:
    """A csv as text, empty where it is empty."""
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def cell(table: pd.DataFrame, row: str, column: str, group: str = "") -> pd.Series:
    """One cell of a table's csv."""
    found = table[(table["row"] == row) & (table["column"] == column) & (table["group"] == group)]
    assert len(found) == 1, (row, column, group)
    return found.iloc[0]


def check_markup(stem: Path) -> None:
    """A table's LaTeX has its braces, dollars and columns; its Markdown has rows of one width."""
    text = Path(f"{stem}.tex").read_text(encoding="utf-8")
    # The comment above, and the line end at the start of \\resizebox's argument, are not text.
    bare = re.sub(r"\\[\\{}%&#_$]", "", text.split("\n", 1)[1]).replace("{!}{%\n", "{!}{")
    assert bare.count("{") == bare.count("}")
    assert bare.count("$") % 2 == 0
    assert not re.search(r"[%#_~^]", bare)
    assert re.findall(r"\\begin\{(\w+)\}", text) == re.findall(r"\\end\{(\w+)\}", text)[::-1]
    body = text.split("\\midrule\n")[1].split("\\bottomrule")[0].strip().splitlines()
    assert all(line.endswith(" \\\\") for line in body)
    assert len({len(re.findall(r"(?<!\\)&", line)) for line in body}) == 1
    for block in Path(f"{stem}.md").read_text(encoding="utf-8").split("\n\n"):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines() if line.startswith("|")}) <= 1


def make_report(folder: Path, *definitions: str, **options) -> Path:
    """Claims, statistics, cost and pages of the results in `folder`; the first page."""
    write_cost(folder)
    common = ["--definitions", *definitions, f"--results={folder}", f"--published={PUBLISHED}"]
    for command in ("claims", "agreement"):
        assert main([command, *common, f"--output={folder / command}.csv"]) == 0
    output = folder / "report" / "index.html"
    assert main(["page", *common, *(f"--{key}={value}" for key, value in options.items()), f"--output={output}"]) == 0
    return output
