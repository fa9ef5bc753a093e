"""Methods with a grid of values: each becomes as many methods as it has candidates.

All methods of a paper with grids have the same number of candidates, so that none is tuned harder than another. Which
candidate is shown is a matter of the report, which chooses by the validation text.
"""

from copy import deepcopy

from raretok.core.errors import UserError

# What a candidate's name and label call a parameter that is not named well enough by itself.
WORDS = {"rate": "learning rate x"}


def expand(paper: dict, where: str) -> dict:
    """`paper` (checked values of its file) with every method that has a `grid` replaced by its candidates.

    A grid maps parameters (`gate.alpha`, or `rate`) to values; the k-th candidate takes the k-th of each. Where the
    paper has `candidates`, those are so many of the first. Tables and figures that name such a method name its
    candidates, and say under `candidates` which method each is one of: {method: {label, methods: {name: values}}}.
    Raises UserError where methods differ in their number of candidates, or a parameter's part does not exist.
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
    """Whether methods of an expanded paper (or of what a report is told of one) are candidates for one."""
    return any("candidates" in entry for section in ("tables", "figures") for entry in paper[section].values())


def check_effort(methods: dict, where: str) -> None:
    """UserError unless every method has a grid, and all grids give the same number of candidates."""
    sizes = {}
    for name, entry in methods.items():
        lengths = {len(values) for values in entry.get("grid", {}).values()}
        if len(lengths) != 1:
            what = "has no grid, which the others have" if not lengths else "has a grid whose lists differ in length"
            raise UserError(f"{where}: methods.{name} {what}; give every method as many candidates")
        sizes[name] = lengths.pop()
    first, number = next(iter(sizes.items()))
    for name, size in sizes.items():
        if size != number:
            raise UserError(
                f"{where}: methods.{name}.grid has {size} candidates, that of {first} {number}; give each as many"
            )


def candidates(name: str, entry: dict, number: int | None, where: str) -> dict[str, tuple[dict, str]]:
    """Name of each candidate, of `number` at most: its entry of the config, and its values in words.

    The name has the value of the grid's first parameter, the label those of all.
    """
    parameters, rows = list(entry["grid"]), list(zip(*entry["grid"].values(), strict=True))[:number]
    if len({row[0] for row in rows}) < len(rows):
        raise UserError(f"{where}.{parameters[0]} has a value twice; every candidate is another one")
    made = {}
    for values in rows:
        own = {key: deepcopy(value) for key, value in entry.items() if key != "grid"}
        for parameter, value in zip(parameters, values, strict=True):
            set_parameter(own, parameter, value, where)
        short = parameters[0].rpartition(".")[2]
        # mu_1 and 500 would run together
        joint = "-" if short[-1].isdigit() else ""
        words = ", ".join(in_words(parameter, value) for parameter, value in zip(parameters, values, strict=True))
        made[f"{name}_{short}{joint}{values[0]:g}"] = own | {"label": f"{entry['label']} ({words})"}, words
    return made


def set_parameter(entry: dict, parameter: str, value: float, where: str) -> None:
    """Set `a.b` in a method's entry; UserError where it has no part `a`."""
    part, _, name = parameter.rpartition(".")
    if part and part not in entry:
        raise UserError(f"{where} names {parameter}, but the method has no {part}")
    (entry[part] if part else entry)[name] = value


def in_words(parameter: str, value: float) -> str:
    """`alpha=0.5`, or what people call it."""
    name = parameter.rpartition(".")[2]
    return f"{WORDS[name]}{value:g}" if name in WORDS else f"{name}={value:g}"


def of_candidates(item: dict, families: dict) -> dict:
    """A table or figure that names methods with candidates, with those in their place.

    Methods that the scale leaves out are left out.
    """
    named = [name for name in item.get("methods", []) if name in families]
    methods = [candidate for name in named for candidate in families[name]["methods"]]
    return item | {"methods": methods, "candidates": {name: families[name] for name in named}}


def with_rate(training: dict, factor: float) -> dict:
    """An experiment's `training` with `factor` times its learning rates; where a warm-up starts is no part of them."""
    if factor == 1:
        return training
    schedule = training["schedule"]
    rates = {key: factor * schedule[key] for key in ("peak", "final") if key in schedule}
    return training | {"schedule": schedule | rates}
