"""Methods with a grid of values, each of which is expanded into several candidates.

All methods of a paper that has grids have the same number of candidates, so that no method is tuned more than another.
The report chooses the candidate to show by the validation text.
"""

from copy import deepcopy

from raretok.core.errors import UserError

# Words for parameters whose own name is unclear in a candidate's label.
WORDS = {"rate": "learning rate x"}


def expand(paper: dict, where: str) -> dict:
    """`paper` (checked values of its file) with every method that has a `grid` replaced by its candidates.

    A grid maps parameters (`gate.alpha`, or `rate`) to values; the k-th candidate takes the k-th value of each. If the
    paper has `candidates: n`, only the first n are kept. Tables and figures that name such a method then name its
    candidates, with {method: {label, methods: {name: values}}} under `candidates`. Raises UserError if methods have
    different numbers of candidates, or if a parameter's part does not exist.
    """
    grids = {name: entry["grid"] for name, entry in paper["methods"].items() if "grid" in entry}
    if not grids:
        return paper
    check_effort(paper["methods"], where)
    methods, families = {}, {}
    for name, entry in paper["methods"].items():
        made = candidates(name, entry, paper.get("candidates"), f"{where}: methods.{name}.grid")
        methods |= {candidate: made_entry for candidate, (made_entry, _) in made.items()}
        families[name] = {"label": entry["label"], "methods": {key: words for key, (_, words) in made.items()}}
    items = {
        section: {item: of_candidates(entry, families) for item, entry in paper[section].items()}
        for section in ("tables", "figures")
    }
    return paper | {"methods": methods} | items


def has_candidates(paper: dict) -> bool:
    """Whether an expanded paper (or its definition for the report) has methods with candidates."""
    return any("candidates" in entry for section in ("tables", "figures") for entry in paper[section].values())


def check_effort(methods: dict, where: str) -> None:
    """Raises UserError unless every method has a grid and all grids have the same number of candidates."""
    sizes = {}
    for name, entry in methods.items():
        lengths = {len(values) for values in entry.get("grid", {}).values()}
        if len(lengths) != 1:
            what = "has no grid, which the others have" if not lengths else "has a grid whose lists differ in length"
            raise UserError(f"{where}: methods.{name} {what}; give all methods the same number of candidates")
        sizes[name] = lengths.pop()
    first, number = next(iter(sizes.items()))
    for name, size in sizes.items():
        if size != number:
            raise UserError(
                f"{where}: methods.{name}.grid has {size} candidates, that of {first} has {number}; make them equal"
            )


def candidates(name: str, entry: dict, number: int | None, where: str) -> dict[str, tuple[dict, str]]:
    """For the name of each candidate, at most `number`: its config entry and its values in words.

    The name holds the value of the grid's first parameter, the label those of all.
    """
    parameters, rows = list(entry["grid"]), list(zip(*entry["grid"].values(), strict=True))[:number]
    if len({row[0] for row in rows}) < len(rows):
        raise UserError(f"{where}.{parameters[0]} has a value twice; candidates must differ in it")
    made = {}
    for values in rows:
        own = {key: deepcopy(value) for key, value in entry.items() if key != "grid"}
        for parameter, value in zip(parameters, values, strict=True):
            set_parameter(own, parameter, value, where)
        short = parameters[0].rpartition(".")[2]
        # Without a separator, mu_1 and 500 would run together.
        joint = "-" if short[-1].isdigit() else ""
        words = ", ".join(in_words(parameter, value) for parameter, value in zip(parameters, values, strict=True))
        made[f"{name}_{short}{joint}{values[0]:g}"] = own | {"label": f"{entry['label']} ({words})"}, words
    return made


def set_parameter(entry: dict, parameter: str, value: float, where: str) -> None:
    """Set `a.b` in a method's entry; raises UserError if it has no part `a`."""
    part, _, name = parameter.rpartition(".")
    if part and part not in entry:
        raise UserError(f"{where} names {parameter}, but the method has no {part}")
    (entry[part] if part else entry)[name] = value


def in_words(parameter: str, value: float) -> str:
    """`alpha=0.5`, or the parameter's name in WORDS."""
    name = parameter.rpartition(".")[2]
    return f"{WORDS[name]}{value:g}" if name in WORDS else f"{name}={value:g}"


def of_candidates(item: dict, families: dict) -> dict:
    """A table or figure whose methods with candidates are replaced by their candidates.

    Methods that the scale leaves out are dropped.
    """
    named = [name for name in item.get("methods", []) if name in families]
    methods = [candidate for name in named for candidate in families[name]["methods"]]
    return item | {"methods": methods, "candidates": {name: families[name] for name in named}}


def with_rate(training: dict, factor: float) -> dict:
    """An experiment's `training` with all learning rates multiplied by `factor`, except the start of a warm-up."""
    if factor == 1:
        return training
    schedule = training["schedule"]
    rates = {key: factor * schedule[key] for key in ("peak", "final") if key in schedule}
    return training | {"schedule": schedule | rates}
