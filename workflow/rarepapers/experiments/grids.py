"""Methods with a grid of values, each of which is expanded into several candidates.

All methods of a paper that has grids have the same number of candidates, so that no method is tuned more than another,
unless a scale gives some methods more (`candidates` of a method). The report chooses the candidate to show by the
validation text, and says how many each method has.
"""

from copy import deepcopy

from rarepapers.core.errors import UserError

# Words for parameters whose own name is unclear in a candidate's label.
WORDS = {"rate": "learning rate x"}


def expand(paper: dict, where: str, every: bool = False) -> dict:
    """`paper` (checked values of its file) with every method that has a `grid` replaced by its candidates.

    A grid maps parameters (`gate.alpha`, or `rate`) to values; the k-th candidate takes the k-th value of each. If the
    paper has `candidates: n`, or a method its own, only the first n are kept. Tables and figures that name such a
    method then name its candidates, with {method: {label, methods: {name: values}}} under `candidates`. Raises
    UserError if methods have different numbers of candidates, or if a parameter's part does not exist. every: keep
    all values of the grids, also those that no scale may use.
    """
    grids = {name: entry["grid"] for name, entry in paper["methods"].items() if "grid" in entry}
    if not grids:
        return paper
    check_effort(paper["methods"], paper.get("candidates"), where)
    methods, families = {}, {}
    for name, entry in paper["methods"].items():
        number = None if every else entry.get("candidates", paper.get("candidates"))
        made = candidates(name, entry, number, f"{where}: methods.{name}.grid")
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


def check_effort(methods: dict, kept: int | None, where: str) -> None:
    """Raises UserError unless every method has a grid with `kept` candidates or more; or, without `kept`, as many.

    A method's own `candidates` are at most those of its grid.
    """
    sizes = {}
    for name, entry in methods.items():
        lengths = {len(values) for values in entry.get("grid", {}).values()}
        if len(lengths) != 1:
            what = "has no grid, which the others have" if not lengths else "has a grid whose lists differ in length"
            raise UserError(f"{where}: methods.{name} {what}; give all methods the same number of candidates")
        sizes[name] = lengths.pop()
    first, number = next(iter(sizes.items()))
    for name, size in sizes.items():
        wanted = methods[name].get("candidates", kept)
        if wanted is not None and size < wanted:
            raise UserError(
                f"{where}: methods.{name}.grid has {size} candidates, but {wanted} are to be kept; add values"
            )
        if kept is None and size != number:
            raise UserError(
                f"{where}: methods.{name}.grid has {size} candidates, that of {first} has {number}; make them equal"
            )


def candidates(name: str, entry: dict, number: int | None, where: str) -> dict[str, tuple[dict, str]]:
    """For the name of each candidate, at most `number`: its config entry and its values in words.

    The name holds the value of the grid's first parameter, and those of all if an earlier candidate has this name; the
    label holds all. Raises UserError if two candidates are equal.
    """
    parameters, rows = list(entry["grid"]), list(zip(*entry["grid"].values(), strict=True))[:number]
    made = {}
    for values in rows:
        own = {key: deepcopy(value) for key, value in entry.items() if key not in ("grid", "candidates")}
        for parameter, value in zip(parameters, values, strict=True):
            set_parameter(own, parameter, value, where)
        pairs = list(zip(parameters, values, strict=True))
        # The experiment's own learning rate is not worth a word beside another parameter.
        words = ", ".join(in_words(*pair) for pair in pairs if len(pairs) == 1 or pair != ("rate", 1))
        names = ["_".join([name, *(in_name(*pair) for pair in part)]) for part in (pairs[:1], pairs)]
        candidate = next((candidate for candidate in names if candidate not in made), None)
        if candidate is None:
            raise UserError(f"{where} has the candidate {words} twice; candidates must differ")
        made[candidate] = own | {"label": f"{entry['label']} ({words})"}, words
    return made


def in_name(parameter: str, value: float) -> str:
    """`alpha0.5`, as in a candidate's name; with a separator if the parameter ends with a digit."""
    short = parameter.rpartition(".")[2]
    return f"{short}{'-' if short[-1].isdigit() else ''}{value:g}"


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
