"""What a report job is told about a paper: its tables, figures, methods and scale, as a JSON file.

The command `definition` writes the file, so that reporting reads results and nothing else. An item's definition is the
paper's with one table or figure, and only the methods that it shows. Keys keep the order of the config file, because
columns and rows are shown in it.
"""

import json
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from raretok.core.errors import UserError


@dataclass(frozen=True)
class Method:
    """One trained method: `label` as printed (a [bracket] marks a further reading), seeds of this scale.

    groups: the groups of data that it is measured on, where it is not all. trained: the experiments in which it is
    trained at this scale, where that is known.
    """

    name: str
    label: str
    experiment: str
    seeds: tuple[int, ...]
    groups: tuple[str, ...] | None = None
    trained: tuple[str, ...] | None = None

    def within(self, experiment: str) -> "Method":
        """The method in another of its experiments."""
        return replace(self, experiment=experiment)

    def is_trained_in(self, experiment: str) -> bool:
        """Whether there can be runs of it in an experiment."""
        return self.trained is None or experiment in self.trained

    def run_folder(self, results: Path, seed: int) -> Path:
        """Where the files of one of its runs lie, below the results of a scale."""
        return results / "runs" / self.experiment / self.name / f"seed{seed}"

    def is_measured_on(self, group: str) -> bool:
        """Whether a number of this group says anything about the method."""
        return self.groups is None or group in self.groups

    @property
    def printed_label(self) -> str:
        """The label of the paper's row: the label without a [bracket]."""
        return self.label.split(" [")[0]

    @property
    def reading(self) -> str:
        """What stands in the [bracket], or an empty string."""
        return self.label.partition(" [")[2].removesuffix("]")


@dataclass(frozen=True)
class Definition:
    """A paper at one scale. `comparable`: whether a difference to the printed numbers means anything here.

    printed: whether there are any printed numbers at all.
    """

    paper: str
    title: str
    scale: str
    scale_title: str
    comparable: bool
    methods: dict[str, Method]
    tables: dict[str, dict] = field(default_factory=dict)
    figures: dict[str, dict] = field(default_factory=dict)
    gpt2: dict = field(default_factory=dict)
    # Experiment: its resolved settings, without any method's overrides.
    settings: dict[str, dict] = field(default_factory=dict)
    headline: dict = field(default_factory=dict)  # the paper's picture: table, methods, column, group, says
    printed: bool = True
    source: dict = field(default_factory=dict)  # the paper's title, authors, venue, url
    summary: dict = field(default_factory=dict)  # what was easy and difficult, and what the authors' code showed

    def heading(self, item: str) -> str:
        """The title of a table or figure, with the scale in it."""
        return f"{self.caption(item)} ({self.scale_note()})"

    def caption(self, item: str) -> str:
        """The title of a table or figure."""
        entry = self.tables.get(item) or self.figures[item]
        kind, number = ("Table", "table") if item in self.tables else ("Figure", "figure")
        if entry.get("kind") == "readings":
            kind, number = "Readings", "readings-"
        return f"{kind} {item.removeprefix(number)}. {entry['title']}"

    def scale_note(self) -> str:
        """The scale, and a warning where its numbers must not be held against the paper's."""
        if self.comparable or not self.printed:
            return self.scale_title
        return f"{self.scale_title}; not comparable with the paper"

    def method(self, name: str) -> Method:
        """The method `name`; raises UserError where an item names one that the paper does not have."""
        if name not in self.methods:
            raise UserError(
                f"config/papers/{self.paper}/paper.yaml reports method '{name}', which is not one of its methods."
            )
        return self.methods[name]

    def of(self, item: str) -> "Definition":
        """The definition as a table or figure sees it: its methods in the experiment, by the labels, that it names."""
        entry = self.tables.get(item) or self.figures[item]
        labels = entry.get("labels", {})
        shown = {}
        for name in entry.get("methods", []):
            method = self.method(name)
            experiment = entry.get("experiment", method.experiment)
            shown[name] = replace(method, experiment=experiment, label=labels.get(name, method.label))
        return replace(self, methods=self.methods | shown)

    def within(self, experiment: str) -> "Definition":
        """The definition with every method in one experiment."""
        return replace(self, methods={name: method.within(experiment) for name, method in self.methods.items()})

    def compared(self, item: str) -> list[str]:
        """The experiments that a table or figure shows side by side; none where it shows each method in one.

        `experiments: all` are those that the scale has, in the order of the config.
        """
        named = (self.tables.get(item) or self.figures[item]).get("experiments")
        if named == "all":
            return list(self.settings)
        return [experiment for experiment in (named or {}).values() if experiment is not None]

    def shown(self) -> list[Method]:
        """Every method in every experiment in which it is trained and a table or figure shows it, each once."""
        items = [*self.tables, *self.figures]
        found = [method for view in (self, *map(self.of, items)) for method in view.methods.values()]
        for item in items:
            names = (self.tables.get(item) or self.figures[item]).get("methods", [])
            found += [self.method(name).within(experiment) for experiment in self.compared(item) for name in names]
        known = {(method.experiment, method.name): method for method in found}
        return [method for method in known.values() if method.is_trained_in(method.experiment)]

    def corpus(self, experiment: str) -> str:
        """Name of the corpus that an experiment has at this scale; the experiment's own where it is not known."""
        return self.settings.get(experiment, {}).get("corpus", {}).get("name", experiment)

    def entry(self, kind: str, item: str) -> dict:
        """The config entry of an item (`kind`: tables, figures); raises UserError for an unknown one."""
        entries = getattr(self, kind)
        if item not in entries:
            raise UserError(
                f"'{item}' is not among the {kind} of config/papers/{self.paper}/paper.yaml: {', '.join(entries)}."
            )
        return entries[item]


def read_definition(source: str, item: str | None = None) -> Definition:
    """The definition in a file of the command `definition`, or in its text; of one table or figure where `item` says.

    Raises UserError where it is not one.
    """
    if not source.startswith("{"):
        try:
            source = Path(source).read_text(encoding="utf-8")
        except OSError as error:
            raise UserError(f"{source} cannot be read ({error}); `raretok definition` writes it") from None
    return parse_definition(source, item)


def of_item(definition: dict, item: str) -> dict:
    """What a paper's definition (its JSON) says of one table or figure: all that its job reads of it."""
    entry = definition.get("tables", {}).get(item) or definition["figures"][item]
    shown = {
        name: method | {"experiment": entry.get("experiment", method["experiment"])}
        for name, method in definition["methods"].items()
        if name in entry.get("methods", [])
    }
    kept = {key: value for key, value in definition.items() if key not in ("headline", "source", "summary")}
    sections = {key: {item: entry} if item in definition.get(key, {}) else {} for key in ("tables", "figures")}
    return kept | {"methods": shown} | sections


def parse_definition(text: str, item: str | None = None) -> Definition:
    """`definition_of` a JSON text; raises UserError where it is not one of the command `definition`."""
    try:
        raw = json.loads(text)
        is_known = item in raw.get("tables", {}) | raw.get("figures", {})
        return definition_of(of_item(raw, item) if is_known else raw)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"The definition given to a report is not one that `raretok definition` writes: {error!r}."
        ) from None


def definition_of(raw: dict) -> Definition:
    """The definition that the command `definition` writes as JSON."""
    methods = {name: _method(name, **method) for name, method in raw["methods"].items()}
    known = {one.name: raw[one.name] for one in fields(Definition) if one.name in raw}
    return Definition(**known | {"methods": methods})


def _method(name: str, label: str, experiment: str, seeds, groups=None, trained=None) -> Method:
    trained = None if trained is None else tuple(trained)
    return Method(name, label, experiment, tuple(seeds), tuple(groups) if groups else None, trained)
