"""The command `figure`: render one figure of a paper as svg, png and pdf from recorded results."""

import argparse
import importlib
from dataclasses import replace
from pathlib import Path

from rarepapers.core.code_digest import figures_module
from rarepapers.core.errors import UserError
from rarepapers.reporting.collect import read_item
from rarepapers.reporting.definition import Definition, read_definition
from rarepapers.reporting.figures.shown import NOT_RUN, Drawn, NotRun
from rarepapers.reporting.figures.style import house_style, save, sheet
from rarepapers.reporting.results import Results, printed_numbers


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("--item", required=True, help="the figure, such as figure3")
    parser.add_argument("--definition", required=True, help="the paper's file of `definition`")
    parser.add_argument("--results", type=Path, required=True, help="folder of the scale, with runs/")
    parser.add_argument("--published", type=Path, help="folder of the papers' printed numbers; else none is drawn")
    parser.add_argument("--output-stem", type=Path, required=True, help="path of the outputs without .svg, .png, .pdf")


def main(arguments: argparse.Namespace) -> None:
    """Run the command `figure`."""
    definition, item = read_definition(arguments.definition), arguments.item
    definition.entry(item)
    with house_style():
        results = read_item(arguments.results, definition, item)
        if arguments.published:
            results = replace(results, printed=printed_numbers(arguments.published, definition.paper))
        figure, text = draw(definition, item, results)
        title = f"{definition.title}: {definition.heading(item)}"
        save(figure, arguments.output_stem, title, text)


def draw(definition: Definition, item: str, results: Results) -> Drawn:
    """A figure and its caption; without runs, a line that says so. Raises UserError if no function draws it."""
    try:
        return drawing(definition, item)(definition, item, results)
    except NotRun as reason:
        experiment = definition.entry(item).get("experiment")
        beyond = experiment is not None and experiment not in definition.settings
        why = str(reason) or ("beyond this scale" if beyond else "")
        figure, text = sheet(0.35), ": ".join(filter(None, [NOT_RUN, why])) + "."
        figure.text(0.011, 0.5, text, va="center", color="#555555")
        return figure, text


def drawing(definition: Definition, item: str):
    """The function in the paper's module with the figure's name (`-` as `_`); raises UserError if there is none."""
    module = figures_module(definition.paper)
    try:
        return getattr(importlib.import_module(module), item.replace("-", "_"))
    except (ModuleNotFoundError, AttributeError):
        raise UserError(f"{module.replace('.', '/')}.py has no function {item}; draw the figure there.") from None
