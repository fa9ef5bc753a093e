"""Definition of a paper at a scale: its tables, figures and methods, read from a JSON file.

The command `definition` writes the file, so that reporting reads results and no config. Keys keep the order of the
config file, which is the order of columns and rows.
"""

from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from rarepapers.core.errors import UserError
from rarepapers.core.files import parse_json


@dataclass(frozen=True)
class Method:
    """One trained method: `label` as printed (a [bracket] marks an alternative reading), and seeds at this scale.

    groups: the groups on which it is measured, if not all. trained: its seeds in every experiment in which it is
    trained at this scale, if known. planned: the seeds that the scale has, without those that were added later; None:
    all. place: its number among the paper's methods, from 0.
    """

    name: str
    label: str
    experiment: str
    seeds: tuple[int, ...]
    groups: tuple[str, ...] | None = None
    trained: dict[str, list[int]] | None = field(default=None, hash=False)
    planned: tuple[int, ...] | None = None
    place: int = 0

    def with_planned_seeds(self) -> "Method":
        """The method without seeds that were added later."""
        if self.planned is None:
            return self
        kept = {name: [seed for seed in seeds if seed in self.planned] for name, seeds in (self.trained or {}).items()}
        seeds = tuple(seed for seed in self.seeds if seed in self.planned)
        return replace(self, seeds=seeds, trained=None if self.trained is None else kept)

    def within(self, experiment: str) -> "Method":
        """The method in another of its experiments."""
        seeds = (self.trained or {}).get(experiment, self.seeds)
        return replace(self, experiment=experiment, seeds=tuple(seeds))

    def is_trained_in(self, experiment: str) -> bool:
        """Whether the method is trained in an experiment."""
        return self.trained is None or experiment in self.trained

    def run_folder(self, results: Path, seed: int) -> Path:
        """The folder of one of its runs, below the results of a scale."""
        return results / "runs" / self.experiment / self.name / f"seed{seed}"

    def is_measured_on(self, group: str) -> bool:
        """Whether the method is measured on this group."""
        return self.groups is None or group in self.groups

    @property
    def printed_label(self) -> str:
        """The label of the paper's row: the label without its [bracket]."""
        return self.label.split(" [")[0]

    @property
    def reading(self) -> str:
        """The text in the [bracket], or an empty string."""
        return self.label.partition(" [")[2].removesuffix("]")


@dataclass(frozen=True)
class Definition:
    """A paper at one scale.

    comparable: whether numbers can be compared with the printed ones. printed: whether the paper has printed numbers.
    equivalence: share of a claim's printed effect that the test of equivalence excludes. outdated: names of finished
    runs that were made with other settings; they count as missing.
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
    # Resolved settings by experiment, without overrides by methods.
    settings: dict[str, dict] = field(default_factory=dict)
    headline: dict = field(default_factory=dict)  # the paper's picture: table, methods, column, group, says
    printed: bool = True
    scale_shows: str = ""  # what verdicts at this scale can and cannot show
    equivalence: float = 0.5
    source: dict = field(default_factory=dict)  # the paper's title, authors, venue, url
    titles: dict[str, str] = field(default_factory=dict)  # display names of corpora and of other domains' texts
    # Display names of the texts that provide a bias's unigrams, by corpus and start.
    unigrams: dict[str, dict[str, str]] = field(default_factory=dict)
    abbreviations: dict[str, str] = field(default_factory=dict)  # and their meanings
    synthetic: bool = False  # whether a corpus of the scale is synthetic; its numbers show only that the rules work
    outdated: list[str] = field(default_factory=list)
    summary: dict = field(default_factory=dict)  # what was easy and difficult, and what the authors' code showed

    def heading(self, item: str) -> str:
        """The title of a table or figure, including the scale; a figure of no method is the same at every scale."""
        if item in self.figures and not self.figures[item].get("methods"):
            return self.caption(item)
        return f"{self.caption(item)} ({self.scale_note()})"

    def caption(self, item: str) -> str:
        """The title of a table or figure."""
        entry = self.entry(item)
        kind, number = ("Table", "table") if item in self.tables else ("Figure", "figure")
        if entry.get("kind") == "readings":
            kind, number = "Readings", "readings-"
        # The paper has a figure 1; figure1-lm is ours.
        number = item.removeprefix(number).replace("-lm", "-language model").replace("-", ", ")
        return f"{kind} {number}. {entry['title']}"

    def scale_note(self) -> str:
        """The scale in a title; a smaller one comes with a warning that its numbers are not comparable.

        A comparable scale changes only the number of seeds, so its name would read as a smaller size.
        """
        if not self.printed:
            return self.scale_title
        if self.comparable:
            return "the paper's own scale"
        return f"{self.scale_title}; not comparable with the paper"

    def of(self, item: str) -> "Definition":
        """The definition for one table or figure: its methods, in its experiment and with its labels."""
        entry = self.entry(item)
        labels = entry.get("labels", {})
        shown = {}
        for name in entry.get("methods", []):
            method = self.methods[name]
            method = method.within(entry.get("experiment", method.experiment))
            shown[name] = replace(method, label=labels.get(name, method.label))
        return replace(self, methods=self.methods | shown)

    def methods_of(self, item: str) -> list[Method]:
        """The methods of a table or figure, in its experiment and with its labels."""
        view = self.of(item)
        return [view.methods[name] for name in self.entry(item).get("methods", [])]

    def with_planned_seeds(self) -> "Definition":
        """The definition without seeds that were added after the scale's own."""
        return replace(self, methods={name: method.with_planned_seeds() for name, method in self.methods.items()})

    def by_other_definitions(self) -> "Definition":
        """The definition with tables whose columns have the other definition of their quantity, if they have one."""
        tables = {}
        for item, entry in self.tables.items():
            columns = {
                column: by_other_definition(how) if "other" in how else how
                for column, how in entry.get("columns", {}).items()
            }
            tables[item] = entry | {"columns": columns} if columns else entry
        return replace(self, tables=tables)

    def within(self, experiment: str) -> "Definition":
        """The definition with every method in one experiment."""
        return replace(self, methods={name: method.within(experiment) for name, method in self.methods.items()})

    def compared(self, item: str) -> list[str]:
        """The experiments that a table or figure compares; empty if it shows each method in one experiment.

        `experiments: all` means those of the scale, in the order of the config.
        """
        named = self.entry(item).get("experiments")
        if named == "all":
            return list(self.settings)
        return [experiment for experiment in (named or {}).values() if experiment is not None]

    def shown(self) -> list[Method]:
        """Every method in every experiment in which it is trained and shown, without duplicates."""
        own = [method for method in self.methods.values() if method.is_trained_in(method.experiment)]
        behind = [method for item in (*self.tables, *self.figures) for method in self.behind(item)]
        shown = dict.fromkeys((method.experiment, method.name) for method in (*own, *behind))
        return [self.methods[name].within(experiment) for experiment, name in shown]

    def behind(self, item: str) -> list[Method]:
        """The methods of a table or figure in every experiment in which it shows them and they are trained."""
        methods = self.methods_of(item)
        if compared := self.compared(item):
            methods = [method.within(experiment) for experiment in compared for method in methods]
        return [method for method in methods if method.is_trained_in(method.experiment)]

    def corpus(self, experiment: str) -> str:
        """Name of an experiment's corpus at this scale; the experiment's own name if unknown."""
        return self.settings.get(experiment, {}).get("corpus", {}).get("name", experiment)

    def title_of(self, text: str) -> str:
        """Display name of a corpus, or of another domain's text; the name itself if unknown."""
        return self.titles.get(text, text)

    def corpus_title(self, experiment: str) -> str:
        """Display name of an experiment's corpus at this scale."""
        return self.title_of(self.corpus(experiment))

    def entry(self, item: str) -> dict:
        """The config entry of a table or figure; raises UserError for an unknown one."""
        entries = self.tables | self.figures
        if item not in entries:
            raise UserError(f"config/papers/{self.paper}/paper.yaml has no {item!r}; it has {', '.join(entries)}.")
        return entries[item]


def by_other_definition(how: dict) -> dict:
    """A column's entry with the other definition of its quantity."""
    return how | {"metric": how["other"]["metric"]}


def read_definition(source: str) -> Definition:
    """The definition in a file of the command `definition`, or in its text."""
    return parse_definition(source if source.startswith("{") else Path(source).read_text(encoding="utf-8"))


def parse_definition(text: str) -> Definition:
    """`definition_of` a JSON text."""
    return definition_of(parse_json(text, "the definition"))


def definition_of(raw: dict) -> Definition:
    """The Definition of the JSON that the command `definition` writes."""
    methods = {
        name: Method(name, **{key: _fixed(value) for key, value in entry.items()}, place=place)
        for place, (name, entry) in enumerate(raw["methods"].items())
    }
    known = {one.name: raw[one.name] for one in fields(Definition) if one.name in raw}
    return Definition(**known | {"methods": methods})


def _fixed(value: object) -> object:
    """A JSON list as a tuple."""
    return tuple(value) if isinstance(value, list) else value
