"""Cross-references of the config: every name exists and has the right kind."""

from collections.abc import Iterable
from pathlib import Path

from rarepapers.core.errors import UserError, meant
from rarepapers.data.catalogue import find_corpus
from rarepapers.metrics.declared import METRICS, groups_of
from rarepapers.models import config_classes

# The scale that runs papers as published, and needs no entry for one.
PUBLISHED = "paper"


def check_name(key: str, name: str, known: list[str], where: str = "config") -> None:
    """Raises UserError if `name` is not in `known`; this also rejects paths that leave the folder. where: a file."""
    if name not in known:
        verb = "names" if key == "papers" else "is"
        raise UserError(f"{where}: {key} {verb} {name!r}; {meant(name, sorted(known))}")


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


def check_named(paper: str, scale: dict, path: Path) -> None:
    """Raises UserError if a reduced scale says nothing of a paper, which would then run at its published size."""
    if paper not in scale["papers"] and path.stem != PUBLISHED:
        raise UserError(
            f"{path} has no entry for the paper {paper!r}, whose experiments would have their published size; write "
            f"`{paper}: {{experiments: ...}}` below `papers` with smaller ones, or `{paper}: {{}}` to keep that size"
        )


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
                    raise UserError(f"{path}: {section}.{item}.methods names {method!r}; {meant(method, methods)}")
                trained = methods[method].get("experiments", experiments)
                if entry.get("experiment", next(iter(trained))) not in trained:
                    raise UserError(
                        f"{path}: {item} shows {method} in experiment {entry['experiment']!r}, "
                        "in which it is not trained"
                    )
    for item, entry in paper["tables"].items():
        if entry["kind"] == "readings":
            check_readings(entry, f"{path}: tables.{item}")
    if "headline" in paper:
        check_headline(paper["headline"], paper, f"{path}: headline")
    for name, method in methods.items():
        for experiment in method.get("experiments", []):
            if experiment not in experiments:
                raise UserError(
                    f"{path}: methods.{name}.experiments names {experiment!r}; {meant(experiment, experiments)}"
                )
    labels = [method["label"] for method in methods.values()]
    for label in labels:
        if labels.count(label) > 1:
            raise UserError(f"{path}: two methods have the label {label!r}; tables could not tell them apart")


def check_headline(headline: dict, paper: dict, where: str) -> None:
    """Raises UserError unless the headline names methods and a column and group of a table."""
    table = paper["tables"].get(headline["table"], {})
    groups = table.get("groups") or list(table.get("experiments", {})) or [""]
    known = {"table": paper["tables"], "methods": table.get("methods", ()), "column": table.get("columns", ())}
    for key, among in (known | {"group": groups}).items():
        names = headline[key]
        for name in [names] if isinstance(names, str) else names:
            if name not in among:
                raise UserError(f"{where}.{key} is {name!r}; {meant(name, among)}")


def columns_in(entry: dict) -> Iterable[tuple[str, dict]]:
    """(name, column) of everything that a table or figure measures: also in further grids, readings and data rows."""
    columns = entry.get("columns", {})
    further = (grid.get("columns", {}) for grid in entry.get("further", ()))
    for shown in (columns, *further, *entry.get("data", {}).values()):
        yield from shown.items()
    yield from ((how["other"]["column"], how | how["other"]) for how in columns.values() if "other" in how)
    readings = entry.get("readings", {})
    for reading in readings.values() if isinstance(readings, dict) else ():
        for metric, other in reading.get("metrics", {}).items():
            yield from ((name, how | {"metric": other}) for name, how in columns.items() if how["metric"] == metric)


def check_metrics(paper: dict, corpora: dict, path: Path) -> None:
    """Raises UserError for a column whose metric is unknown, or that no experiment of its item measures in a group."""
    for section in ("tables", "figures"):
        for item, entry in paper[section].items():
            for name, how in columns_in(entry):
                where, metric = f"{path}: {section}.{item}: column {name!r}", how["metric"]
                if metric not in METRICS:
                    raise UserError(f"{where} has the metric {metric!r}; {meant(metric, METRICS)}")
                check_groups(paper, corpora, entry, how, where)


def check_groups(paper: dict, corpora: dict, entry: dict, how: dict, where: str) -> None:
    """Raises UserError unless each group of a column is measured in an experiment in which the column shows it."""
    experiments, compared = paper["experiments"], entry.get("experiments", {})
    if "of" in how:
        asked = [([experiment], group) for experiment, group in how["of"].items()]
    elif compared:
        asked = [([experiment], None) for experiment in compared.values()]
    else:
        trained = [paper["methods"][method].get("experiments", list(experiments)) for method in entry["methods"]]
        names = [entry["experiment"]] if "experiment" in entry else [names[0] for names in trained]
        groups = how.get("groups") or entry.get("groups") or [""]
        asked = [(names, how.get("group", group)) for group in groups]
    for names, group in asked:
        known = []
        for name in names:
            if name not in experiments:
                raise UserError(f"{where} names the experiment {name!r}; {meant(name, experiments)}")
            kind = find_corpus(corpora, experiments[name]["corpus"]["name"])["kind"]
            if kind in METRICS[how["metric"]].measured:
                found = groups_of(how["metric"], kind, experiments[name]["evaluation"])
                known += [group] if found is None or group is None else found
        if not known:
            raise UserError(f"{where} has the metric {how['metric']!r}, which is not measured in {', '.join(names)}")
        if group not in known:
            raise UserError(f"{where} has the group {group!r}; {meant(group, dict.fromkeys(known))}")


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
