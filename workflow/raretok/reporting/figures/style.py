"""What all figures share: fonts, colours that every eye and a grey printer tell apart, saving."""

import textwrap
from contextlib import contextmanager
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from raretok.core.files import atomic_path

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
HIGH, LOW = BLUE, ORANGE  # the two languages
FREQUENT, MEDIUM, RARE = BLUE, GREEN, ORANGE  # groups of tokens; the papers have blue, green and red
SERIES = [
    {"color": BLACK, "linestyle": "-", "marker": "o"},
    {"color": BLUE, "linestyle": "--", "marker": "s"},
    {"color": ORANGE, "linestyle": "-.", "marker": "^"},
    {"color": GREEN, "linestyle": ":", "marker": "D"},
    {"color": PINK, "linestyle": (0, (6, 1, 1, 1, 1, 1)), "marker": "v"},
    {"color": YELLOW, "linestyle": (0, (8, 2)), "marker": "P"},
    {"color": SKY, "linestyle": (0, (3, 1)), "marker": "X"},
]
STYLE = {
    "font.size": 11,
    "axes.titlesize": 12,
    "axes.labelsize": 11,
    "legend.fontsize": 10,
    "figure.titlesize": 13,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "hatch.linewidth": 0.6,
    "svg.hashsalt": "raretok",  # ids in the svg would be random otherwise
    "pdf.fonttype": 42,
}
# Dates and versions of the drawing program would make equal figures differ.
METADATA = {
    ".svg": {"Date": None, "Creator": None},
    ".png": {"Software": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
DPI = 150


@contextmanager
def house_style():
    """Matplotlib's defaults with the style above, whatever the user's own matplotlibrc says."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        yield


def sheet(width: float, height: float) -> Figure:
    """An empty figure of width x height inches whose parts keep clear of each other."""
    return Figure(figsize=(width, height), layout="constrained")


def caption(figure: Figure, title: str, text: str) -> None:
    """Put the title (with the scale in it) above the figure and the caption below."""
    width = figure.get_figwidth()
    figure.suptitle(textwrap.fill(title, int(width * 8.7)), x=0.01, ha="left", fontweight="bold")
    figure.supxlabel(textwrap.fill(text, int(width * 13.5)), x=0.01, ha="left", fontsize=9.5, color="#333333")


def save(figure: Figure, stem: Path | str, title: str, text: str) -> None:
    """Write `stem`.svg, .png and .pdf; the same figure gives the same bytes.

    The svg carries title and description, for readers who do not see it.
    """
    # Laying out takes most of the time, and is the same for all formats.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for suffix, metadata in METADATA.items():
        if suffix == ".svg":
            metadata = metadata | {"Title": title, "Description": text}
        with atomic_path(f"{stem}{suffix}") as temporary:
            figure.savefig(temporary, dpi=DPI, metadata=metadata)


def not_run(axes: Axes, name: str) -> None:
    """Say in an empty panel that its run is missing."""
    axes.text(0.5, 0.5, f"not run:\n{name}", ha="center", va="center", transform=axes.transAxes, color="#555555")
    axes.set(xticks=[], yticks=[])
    axes.grid(False)


def partly_run(axes: Axes, names: list[str]) -> None:
    """Say in a panel with curves which others would be there, had they been run."""
    if names:
        text = f"not run: {', '.join(names)}"
        axes.text(0.98, 0.03, text, ha="right", fontsize=9, transform=axes.transAxes, color="#555555")


def symbol_ticks(axes: Axes, symbols: list[str]) -> None:
    """Label every position of the x axis with its character, two rows deep so that they keep apart."""
    shown = [{"\n": "\\n", " ": "␣"}.get(symbol, symbol).replace("$", r"\$") for symbol in symbols]
    labels = [name if k % 2 == 0 else f"\n{name}" for k, name in enumerate(shown)]
    axes.set_xticks(range(len(labels)), labels, fontsize=8.5, family="monospace", linespacing=1.0)
    axes.set_xlim(-0.8, len(labels) - 0.2)
    axes.grid(False, axis="x")
    axes.tick_params(axis="x", length=2, pad=2)
