"""Write docs/parameters.md, a page of every key of the config files, the JSON schemas that editors check them with, and
the lists of metrics in docs/results.md and of csv columns in docs/adding_a_paper.md.

    python docs/parameters.py

Page and schemas come from the types that check config: `config_types` of experiments, `catalogue_types`, `throughput`.
What a key means stands in the comment above it there. The lists come from `metrics/declared.py` and
`reporting/paper_files.py`.
"""

import inspect
import json
import re
import sys
from pathlib import Path
from types import UnionType
from typing import Annotated, Literal, Union, get_args, get_origin

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "workflow"))

from rarepapers.core.type_check import PARTIAL, SCALARS, Limit, bare, fields_of, is_mapping  # noqa: E402
from rarepapers.data.catalogue_types import Corpora, DataSets  # noqa: E402
from rarepapers.experiments.config_types import Choices, Paper, Scale  # noqa: E402
from rarepapers.metrics.declared import rows_of  # noqa: E402
from rarepapers.planning.throughput import Measurements  # noqa: E402
from rarepapers.reporting.paper_files import CLAIMS, NUMBERS  # noqa: E402

# By the name of its schema: the files of config/ that are of a type.
FILES = {
    "config": ("config.yaml", Choices),
    "scale": ("scales/<scale>.yaml", Scale),
    "paper": ("papers/<paper>/paper.yaml", Paper),
    "corpora": ("corpora.yaml", Corpora),
    "datasets": ("datasets.yaml", DataSets),
    "throughput": ("throughput.yaml", Measurements),
}
JSON_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
HEAD = """# Parameters

<!-- Written by docs/parameters.py from the types that check config; edit those and run it again. -->
Every key of the files of `config/`, file by file. Keys in **bold** are required. What the files are for:
[config/README.md](../config/README.md). Parameters of a method's parts: [adding a method](adding_a_method.md).
"""


def own_keys(kind: type) -> dict[str, str]:
    """The keys that the class of a mapping has itself, not from another class: the comments above them."""
    # A mapping of options has the comments of their dataclass, and of those that it comes from.
    classes = reversed(kind.described_by.__mro__[:-1]) if hasattr(kind, "described_by") else [kind]
    try:
        source = "".join(map(inspect.getsource, classes))
    except (OSError, TypeError):  # made by a call
        return dict.fromkeys(fields_of(kind), "")
    found = re.findall(r"((?:^    # .*\n)*)^    (\w+): (?!ClassVar)", source, flags=re.MULTILINE)
    comments = {name: " ".join(line.strip("# ") for line in comment.splitlines()) for comment, name in found}
    return {name: comments.get(name, "") for name in fields_of(kind) if name in comments or name == "name"}


def schema_of(kind: object, definitions: dict, partial: bool = False) -> dict:
    """The JSON schema of a type; those of mappings become `definitions`."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        schema = schema_of(parts[0], definitions, partial or PARTIAL in parts)
        for note in parts[1:]:
            if isinstance(note, str):
                schema["description"] = note
            elif isinstance(note, Limit):
                schema[note.keyword] = note.bound
        return schema
    if origin in (Union, UnionType):
        return {"anyOf": [schema_of(part, definitions, partial) for part in parts]}
    if origin is Literal:
        return {"enum": list(parts)}
    if origin is list:
        return {"type": "array", "items": schema_of(parts[0], definitions, partial)}
    if origin is dict:
        names, values = (schema_of(part, definitions, partial) for part in parts)
        return {"type": "object", "propertyNames": names, "additionalProperties": values}
    if is_mapping(kind):
        name = f"Partial{kind.__name__}" if partial else kind.__name__
        if name not in definitions:
            definitions[name] = {}  # its place, before those of its keys
            definitions[name] |= _mapping(kind, definitions, partial)
        return {"$ref": f"#/$defs/{name}"}
    return {} if kind is object else {"type": JSON_TYPES[kind]}


def _mapping(kind: type, definitions: dict, partial: bool) -> dict:
    meanings = own_keys(kind)
    properties = {
        name: schema_of(hint, definitions, partial) | ({"description": meanings[name]} if meanings.get(name) else {})
        for name, (hint, _) in fields_of(kind).items()
    }
    schema = {"type": "object", "properties": properties, "additionalProperties": getattr(kind, "others", False)}
    schema["dependentRequired"] = getattr(kind, "needs", {})
    if not partial:
        schema["required"] = [name for name, (_, needed) in fields_of(kind).items() if needed]
        if getattr(kind, "one_of", ()):
            schema["oneOf"] = [{"required": [name]} for name in kind.one_of]
    return schema


def schema_text(kind: object) -> str:
    """The JSON schema of a file, a line for each mapping."""
    definitions = {}
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema"} | schema_of(kind, definitions)
    lines = (f"{json.dumps(name)}: {json.dumps(one, ensure_ascii=False)}" for name, one in definitions.items())
    return f"{json.dumps(schema)[:-1]}, " + '"$defs": {\n' + ",\n".join(lines) + "\n}}\n"


def words_of(kind: object) -> str:
    """What a key can hold, in words."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        said = [note for note in parts[1:] if isinstance(note, str)]
        # Where all keys are needed, their names say enough.
        every = get_args(get_args(parts[0])[0]) if get_origin(parts[0]) is dict else None
        notes = [note for note in parts[1:] if isinstance(note, Limit) and note.bound != every]
        limits = [note.words.partition(" ")[2] for note in notes]
        said = said or [words_of(parts[0]), *limits]
        words = re.sub(r"(\d+) or more entries, \1 or fewer entries", r"\1 entries", ", ".join(said))
        return words + (", any of its keys" if PARTIAL in parts else "")
    if origin in (Union, UnionType):
        return ", or ".join(map(words_of, parts))
    if origin is Literal:
        return ", ".join(f"`{part}`" for part in parts)
    if origin is list:
        return f"list of {words_of(parts[0])}"
    if origin is dict:
        names = f"keys {words_of(parts[0])}" if get_origin(parts[0]) is Literal else "by name"
        return f"{names}: {words_of(parts[1])}"
    if is_mapping(kind):
        return f"[{title_of(kind)}](#{title_of(kind).replace(' ', '-')})"
    return {object: "anything"}.get(kind) or SCALARS[kind].removeprefix("a ")


def title_of(kind: type) -> str:
    """The name of a mapping's class, as words."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind.__name__).lower()


def mappings_in(kind: object) -> list[type]:
    """The mappings that a type is made of, outermost first, each once."""
    inner = [hint for hint, _ in fields_of(kind).values()] if is_mapping(kind) else get_args(bare(kind))
    own = [kind] if is_mapping(kind) else []
    return list(dict.fromkeys(own + [one for part in inner for one in mappings_in(part)]))


def section(kind: type) -> str:
    """The keys of a mapping as a table."""
    lines = [f"### {title_of(kind)}", "", (kind.__doc__ or "").replace("<", "&lt;"), ""]
    lines += ["| key | value | meaning |", "|---|---|---|"]
    for name, meaning in own_keys(kind).items():
        hint, needed = fields_of(kind)[name]
        shown = f"**`{name}`**" if needed else f"`{name}`"
        lines.append(f"| {shown} | {words_of(hint)} | {meaning.replace('<', '&lt;')} |")
    if getattr(kind, "one_of", ()):
        lines += ["", f"Exactly one of {', '.join(f'`{name}`' for name in kind.one_of)}."]
    return "\n".join(lines)


def page() -> str:
    """The page of parameters."""
    parts, seen = [HEAD], set()
    for file, kind in FILES.values():
        parts.append(f"## `config/{file}`\n")
        if not is_mapping(kind):
            parts.append(f"By name: {words_of(get_args(kind)[1])}.\n")
        parts += [section(one) + "\n" for one in mappings_in(kind) if one not in seen]
        seen.update(mappings_in(kind))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts))


def metric_lines(kind: str) -> list[str]:
    """The metrics of a kind of evaluation, as a table."""
    lines = ["| metric | group | split | unit | better | |", "|---|---|---|---|---|---|"]
    return lines + [
        f"| `{name}` | {groups} | {splits} | {metric.unit} | {metric.better} | {metric.says} |"
        for name, metric, groups, splits in rows_of(kind)
    ]


def column_lines(file: str) -> list[str]:
    """The columns of a paper's csv file, as a table."""
    columns = {"numbers.csv": NUMBERS, "claims.csv": CLAIMS}[file]
    return ["| column | content |", "|---|---|", *(f"| `{name}` | {says} |" for name, says in columns.items())]


def with_lists(path: str) -> str:
    """A page with its lists between `<!-- metrics: KIND -->` or `<!-- columns: FILE -->` and `<!-- end -->`."""

    def listed(marked: re.Match) -> str:
        make = {"metrics": metric_lines, "columns": column_lines}[marked[2]]
        return "\n".join([marked[1], *make(marked[3]), marked[4]])

    text = (ROOT / path).read_text(encoding="utf-8")
    return re.sub(r"(<!-- (metrics|columns): (\S+) -->)\n.*?(<!-- end -->)", listed, text, flags=re.DOTALL)


def files() -> dict[str, str]:
    """Content of every file that this writes, by its path in the project."""
    schemas = {f"config/schemas/{name}.schema.json": schema_text(kind) for name, (_, kind) in FILES.items()}
    lists = {path: with_lists(path) for path in ("docs/results.md", "docs/adding_a_paper.md")}
    return {"docs/parameters.md": page()} | lists | schemas


if __name__ == "__main__":
    for path, content in files().items():
        (ROOT / path).parent.mkdir(exist_ok=True)
        (ROOT / path).write_text(content, encoding="utf-8")
