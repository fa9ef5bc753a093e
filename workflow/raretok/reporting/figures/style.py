"""What all figures share: fonts, colours that every eye and a grey printer tell apart, saving."""

import textwrap
from contextlib import contextmanager
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from raretok.core.files import atomic_path
from raretok.reporting.figures.smaller_svg import smaller_svg

# Okabe and Ito's palette, which differs in lightness too; each colour goes with one line style and marker.
BLUE, ORANGE, GREEN, PINK, SKY, YELLOW, BLACK = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#B8A000",
    "#000000",
)
# Groups of tokens and the two languages have these three, in all figures; the papers have blue, green and red.
HIGH, LOW = BLUE, ORANGE
FREQUENT, MEDIUM, RARE = BLUE, GREEN, ORANGE
# Methods have others: one each in all figures, with a line style and a marker of its own for who sees no colour.
MAGENTA, PURPLE, BROWN, GREY = "#C51B7D", "#6A3D9A", "#8C5109", "#7A7A7A"
BASE = {"color": BLACK, "linestyle": "-", "marker": "o"}
METHODS = {
    "baseline": BASE,
    "mle": BASE,
    "zero": BASE,
    "none": {"color": GREY, "linestyle": ":", "marker": "D"},
    "unigram": {"color": MAGENTA, "linestyle": "--", "marker": "^"},
    "c4": {"color": BROWN, "linestyle": "-.", "marker": "s"},
    "agg": {"color": PURPLE, "linestyle": "--", "marker": "s"},
    "threshold_m8": {"color": "#F7B5D8", "linestyle": (0, (3, 1)), "marker": "s"},
    "threshold_m4": {"color": "#EE82BE", "linestyle": "-.", "marker": "^"},
    "threshold_m2": {"color": MAGENTA, "linestyle": "--", "marker": "D"},
    "threshold_m1": {"color": "#8E0152", "linestyle": ":", "marker": "v"},
    "threshold_m0.5": {"color": "#4D002D", "linestyle": (0, (8, 2)), "marker": "P"},
    "threshold_m1_t0.46": {"color": BROWN, "linestyle": (0, (6, 1, 1, 1)), "marker": "X"},
}


def look_of(method) -> dict:
    """Colour, line style and marker of a method."""
    return METHODS.get(method.name, {"color": PURPLE, "linestyle": (0, (1, 1)), "marker": "d"})


STYLE = {
    "font.size": 10,
    "axes.titlesize": 10.5,
    "axes.labelsize": 10,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "legend.fontsize": 9.5,
    "figure.titlesize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "hatch.linewidth": 0.6,
    "font.sans-serif": ["DejaVu Sans", "Verdana"],
    "font.monospace": ["DejaVu Sans Mono"],
    "svg.fonttype": "none",  # letters as letters: a smaller file, which a browser can search
    "svg.hashsalt": "raretok",  # ids in the svg would be random otherwise
    "pdf.fonttype": 42,
}
# Dates and versions of the drawing program would make equal figures differ.
METADATA = {
    ".svg": {"Date": None, "Creator": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    ".png": {"Software": None},
}
DPI = 150
# Of clouds of points within an svg: pages of all papers together stay below 3 MB.
SVG_DPI = 110
LINE = 0.2  # inches, of a line of a title
# How the caption of a figure begins that has nothing to show.
NOT_RUN = "Not run"
WIDTH = 9.0  # inches, of a figure that is as wide as a page


@contextmanager
def house_style():
    """Matplotlib's defaults with the style above, whatever the user's own matplotlibrc says."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        yield


def sheet(height: float, width: float = WIDTH) -> Figure:
    """An empty figure of width x height inches whose parts keep clear of each other."""
    return Figure(figsize=(width, height), layout="constrained")


def empty(text: str) -> Figure:
    """The sheet of a figure that has no runs: no frame, a line of text."""
    figure = sheet(0.6, 5.0)
    figure.text(0.02, 0.5, text, va="center", color="#555555")
    return figure


def save(figure: Figure, stem: Path | str, title: str, text: str) -> None:
    """Write `stem`.svg, .png and .pdf; the same figure gives the same bytes.

    svg and pdf are the drawing alone, for pages and papers that have a caption of their own; the svg carries title and
    description, for readers who do not see it. The png has the title (with the scale) above and the caption below it.
    """
    # Laying out takes most of the time, and is the same for all formats.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for suffix, metadata in METADATA.items():
        more, within, dpi = {}, None, DPI
        if suffix == ".svg":
            more, dpi = {"Title": title, "Description": text}, SVG_DPI
        if suffix == ".png":
            within = _captioned(figure, title, text)
        with atomic_path(f"{stem}{suffix}") as temporary:
            figure.savefig(temporary, dpi=dpi, metadata=metadata | more, bbox_inches=within)
            if suffix == ".svg":
                temporary.write_text(smaller_svg(temporary.read_text(encoding="utf-8")), encoding="utf-8")


def _captioned(figure: Figure, title: str, text: str) -> Bbox:
    """Write title and caption around the drawing; returns the sheet with both, in inches."""
    width, height = figure.get_size_inches()
    above = textwrap.fill(title, int(width * 10.5))
    below = textwrap.fill(text, int(width * 13.5))
    figure.text(0.1 / width, 1 + 0.08 / height, above, va="bottom", ha="left", fontsize=11, fontweight="bold")
    figure.text(0.1 / width, -0.08 / height, below, va="top", ha="left", fontsize=9.5, color="#333333")
    lines = [LINE * (1 + part.count("\n")) + 0.15 for part in (below, above)]
    return Bbox([[0, -lines[0]], [width, height + lines[1]]])


def not_run(axes: Axes, name: str) -> None:
    """Say in an empty panel that its run is missing."""
    axes.text(0.5, 0.5, f"not run:\n{name}", ha="center", va="center", transform=axes.transAxes, color="#555555")
    axes.set(xticks=[], yticks=[])
    axes.grid(False)


def symbol_ticks(axes: Axes, symbols: list[str]) -> None:
    """Label every position of the x axis with its character, two rows deep so that they keep apart."""
    shown = [{"\n": "\\n", " ": "␣"}.get(symbol, symbol).replace("$", r"\$") for symbol in symbols]
    labels = [name if k % 2 == 0 else f"\n{name}" for k, name in enumerate(shown)]
    axes.set_xticks(range(len(labels)), labels, fontsize=8.5, family="monospace", linespacing=1.0)
    axes.set_xlim(-0.8, len(labels) - 0.2)
    axes.grid(False, axis="x")
    axes.tick_params(axis="x", length=2, pad=2)
