"""Places of a paper's tables that printed numbers and claims can name: rows, columns and groups; few imports."""

from rarepapers.reporting.definition import Definition

# Columns of stop_jostling's table 3: (part of the measurement's JSON, its key).
GPT2_COLUMNS = {
    "d_model": ("", "width"),
    "margin_init": ("random_init", "margin"),
    "margin_init_sigma": ("random_init", "margin_sigma"),
    "margin_PT": ("pretrained", "margin"),
    "margin_PT_sigma": ("pretrained", "margin_sigma"),
    "alpha_init": ("random_init", "alpha"),
    "alpha_init_sigma": ("random_init", "alpha_sigma"),
    "alpha_PT": ("pretrained", "alpha"),
    "alpha_PT_sigma": ("pretrained", "alpha_sigma"),
}
# Column of distinct tokens of generated texts, and the group of the mean over all prefixes.
UNIQ = "Uniq"
MEAN = "mean of all prefixes"
# Kinds of tables with numbers that numbers.csv and claims.csv can name.
KINDS = ("metrics", "generated", "gpt2")


def rows_of(definition: Definition, table: str) -> list[str]:
    """The printed rows of a table: labels of its methods, of its data and of GPT-2 models."""
    entry = definition.tables[table]
    if entry["kind"] == "gpt2":
        return list(definition.gpt2.get("models", {}))
    methods = definition.methods_of(table)
    names = [name for method in methods for name in (method.printed_label, method.label)]
    return list(dict.fromkeys([*names, *entry.get("data", {})]))


def columns_of(definition: Definition, table: str) -> dict[str, list[str]]:
    """The printed columns of a table with their groups, an empty name if they have none."""
    entry = definition.tables[table]
    if entry["kind"] == "gpt2":
        return {column: [""] for column in GPT2_COLUMNS}
    if entry["kind"] == "generated":
        return {UNIQ: [*(f"example{k}" for k in range(1, len(entry["examples"]) + 1)), MEAN]}
    groups = list(entry.get("groups") or entry.get("experiments") or [""])
    shown = {name: {} for row in entry.get("data", {}).values() for name in row} | entry["columns"]
    return {name: [group for group in groups if group in how.get("groups", groups)] for name, how in shown.items()}


def places_of(definition: Definition) -> dict[str, tuple[list[str], dict[str, list[str]]]]:
    """Rows, and columns with their groups, of every table that printed numbers and claims can name."""
    tables = [name for name, entry in definition.tables.items() if entry["kind"] in KINDS]
    return {table: (rows_of(definition, table), columns_of(definition, table)) for table in tables}
