"""Cross-references of the config: every name exists and has the right kind."""

from collections.abc import Iterable
from pathlib import Path

from rarepapers.core.errors import UserError
from rarepapers.data.catalogue import find_corpus
from rarepapers.models import config_classes


def check_name(key: str, name: str, known: list[str], where: str = "config") -> None:
    """Raises UserError if `name` is not in `known`; this also rejects paths that leave the folder. where: a file."""
    if name not in known:
        verb = "names" if key == "papers" else "is"
        raise UserError(f"{where}: {key} {verb} {name!r}; it can be {', '.join(sorted(known))}")


def check_choices(config: dict) -> None:
    """Raises UserError for choices of config.yaml that exclude each other, or that name a missing folder."""
    if config["recorded"] and config["finished"]:
        raise UserError("config: recorded and finished are both true; choose which of the two reports to render")
    mirror = config["data_mirror"]
    if mirror and not Path(mirror).is_dir():
        raise UserError(f"config: data_mirror is {mirror}, which is not a folder; name one, or null for downloads")
    weights = config["gpt2_weights"]
    if weights not in ("skip", "hub") and not Path(weights).is_dir():
        raise UserError(f"config: gpt2_weights is {weights}, which is not a folder; name one, or skip or hub")


def check_finished(config: dict, root: Path, results: str) -> None:
    """Raises UserError if finished runs are to be shown but the folder `results` has none."""
    if (config["recorded"] or config["finished"]) and not any((root / results).glob("runs/*/*/seed*/metrics.json")):
        remedy = "leave out finished=true to train"
        if config["recorded"]:
            remedy = "keep finished runs there with `make record`"
        raise UserError(f"{results} has no finished runs; {remedy}")


def check_experiments(papers: dict, corpora: dict) -> None:
    """Raises UserError unless experiments suit their corpora and have names that are unique across papers."""
    names = [name for paper in papers.values() for name in paper["experiments"]]
    for paper, settings in papers.items():
        for name, experiment in settings["experiments"].items():
            check_corpus(experiment, corpora, f"config/papers/{paper}/paper.yaml: experiments.{name}")
            if names.count(name) > 1:
                raise UserError(f"config/papers: two papers have an experiment {name!r}; rename one")


def check_overrides(changes: dict, only: Iterable[str], paper: dict, where: str) -> None:
    """Raises UserError if a scale adds experiments or methods to a paper; it can only change or drop existing ones.

    only: the methods that it keeps.
    """
    for name in only:
        if name not in paper["methods"]:
            raise UserError(f"{where}.only names {name!r}; the paper has {', '.join(paper['methods'])}")
    for section in ("experiments", "methods"):
        for name in changes.get(section, {}):
            if name not in paper[section]:
                known = ", ".join(paper[section])
                raise UserError(f"{where}.{section}.{name} is not in the paper, which has {known}")
    for name, entry in changes.get("methods", {}).items():
        if "grid" in (entry or {}):
            raise UserError(f"{where}.methods.{name}.grid cannot be changed; `candidates: n` keeps the first n of all")


def check_references(paper: dict, path: Path) -> None:
    """Raises UserError if a table or figure names a missing method, or if two methods have the same label."""
    methods, experiments = paper["methods"], paper["experiments"]
    for section in ("tables", "figures"):
        for item, entry in paper[section].items():
            for method in entry.get("methods", []):
                if method not in methods:
                    raise UserError(f"{path}: {section}.{item}.methods names {method!r}, which is not in `methods`")
                trained = methods[method].get("experiments", experiments)
                if entry.get("experiment", next(iter(trained))) not in trained:
                    raise UserError(
                        f"{path}: {item} shows {method} in experiment {entry['experiment']!r}, "
                        "in which it is not trained"
                    )
    for item, entry in paper["tables"].items():
        if entry["kind"] == "readings":
            check_readings(entry, f"{path}: tables.{item}")
    headline = paper.get("headline", {})
    known = {"table": paper["tables"], "methods": methods}
    for key, among in known.items():
        names = headline.get(key, [])
        for name in [names] if isinstance(names, str) else names:
            if name not in among:
                raise UserError(f"{path}: headline.{key} names {name!r}, which does not exist")
    for name, method in methods.items():
        for experiment in method.get("experiments", []):
            if experiment not in experiments:
                raise UserError(f"{path}: methods.{name}.experiments names {experiment!r}, which does not exist")
    labels = [method["label"] for method in methods.values()]
    for label in labels:
        if labels.count(label) > 1:
            raise UserError(f"{path}: two methods have the label {label!r}; tables could not tell them apart")


def check_readings(entry: dict, where: str) -> None:
    """Raises UserError unless a table of readings has one method per reading and the number that decides its answer."""
    readings, methods = entry["readings"], entry["methods"]
    if isinstance(readings, list) and len(methods) % len(readings):
        raise UserError(
            f"{where}.methods has {len(methods)} methods for {len(readings)} readings; name one for each reading"
        )
    decides, groups = entry["decides"], entry.get("groups", [""])
    column, group = decides["column"], decides.get("group", "")
    if column not in entry["columns"]:
        raise UserError(f"{where}.decides.column is {column!r}; it can be {', '.join(entry['columns'])}")
    shown = [name for name in groups if name in entry["columns"][column].get("groups", groups)]
    if group not in shown:
        raise UserError(f"{where}.decides.group is {group!r}; {column} is shown for {', '.join(map(repr, shown))}")


# The key that identifies the `evaluation` of each kind of corpus, and the kind in words.
EVALUATIONS = {"characters": "examples", "language": "word_similarity", "translation": "beam"}
KINDS_IN_WORDS = {"characters": "a character corpus", "language": "a language", "translation": "a parallel corpus"}


def check_corpus(experiment: dict, corpora: dict, where: str) -> None:
    """Raises UserError if an experiment does not suit the kind of its corpus."""
    name = experiment["corpus"]["name"]
    kind = find_corpus(corpora, name)["kind"]
    if kind == "characters" and "low_resource_probability" not in experiment["corpus"]:
        raise UserError(f"{where}.corpus lacks low_resource_probability, which character corpora need, such as {name}")
    if EVALUATIONS[kind] not in experiment["evaluation"]:
        raise UserError(
            f"{where}.evaluation is not for corpus {name}, which is {KINDS_IN_WORDS[kind]}; see docs/parameters.md"
        )
    translates = kind == "translation"
    fitting = [model for model, options in config_classes().items() if options.translates == translates]
    if experiment["model"]["name"] not in fitting:
        raise UserError(
            f"{where}.model.name is {experiment['model']['name']}, but corpus {name} is {KINDS_IN_WORDS[kind]}; "
            f"it needs {' or '.join(fitting)}"
        )
    needed = "batch_tokens" if translates else "batch_size"
    if needed not in experiment["training"]:
        raise UserError(f"{where}.training.{needed} is missing, which corpus {name} needs")
