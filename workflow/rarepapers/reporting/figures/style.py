"""Common style of all figures: fonts, colours that are distinct in grey and for colour-blind readers, saving."""

import textwrap
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import matplotlib as mpl
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from rarepapers.core.files import atomic_path
from rarepapers.reporting.figures.smaller_svg import smaller_svg
from rarepapers.reporting.token_text import visible_text

# Okabe and Ito's palette, which also differs in lightness; each colour has its own line style and marker.
BLUE, ORANGE, GREEN, PINK = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
SKY, YELLOW, BLACK = "#56B4E9", "#B8A000", "#000000"
# Colours of the token groups and the two languages in all figures; the papers use blue, green and red.
HIGH, LOW = BLUE, ORANGE
FREQUENT, MEDIUM, RARE = BLUE, GREEN, ORANGE
# Colours of the methods in all figures, each with its own line style and marker.
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
# Looks of a paper's methods without one above, in the order of its config; the first is the baseline.
LOOKS = [
    BASE,
    {"color": PURPLE, "linestyle": (0, (1, 1)), "marker": "d"},
    {"color": ORANGE, "linestyle": "--", "marker": "s"},
    {"color": BLUE, "linestyle": "-.", "marker": "^"},
    {"color": GREEN, "linestyle": (0, (3, 1)), "marker": "v"},
    {"color": PINK, "linestyle": (0, (8, 2)), "marker": "P"},
    {"color": BROWN, "linestyle": (0, (6, 1, 1, 1)), "marker": "X"},
    {"color": SKY, "linestyle": "-", "marker": "<"},
    {"color": YELLOW, "linestyle": "--", "marker": ">"},
]


def look_of(method) -> dict:
    """Colour, line style and marker of a method."""
    return METHODS.get(method.name, LOOKS[method.place % len(LOOKS)])


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
    "svg.fonttype": "none",  # text stays text: smaller files, searchable in a browser
    "svg.hashsalt": "raretok",  # makes the ids in the svg reproducible
    "pdf.fonttype": 42,
}
# Without dates and program versions, equal figures have equal files.
METADATA = {
    ".svg": {"Date": None, "Creator": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    ".png": {"Software": None},
}
DPI = 150
# Resolution of point clouds in an svg: one pixel per pixel of CSS. The pages of all papers must stay below 3 MB.
SVG_DPI = 96
LINE = 0.2  # inches, height of a title line
WIDTH = 9.0  # inches, full width of a page


@contextmanager
def house_style():
    """Matplotlib's defaults with the style above, independent of the user's matplotlibrc."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        yield


def sheet(height: float, width: float = WIDTH) -> Figure:
    """An empty figure of width x height inches with constrained layout."""
    return Figure(figsize=(width, height), layout="constrained")


def save(figure: Figure, stem: Path | str, title: str, text: str) -> None:
    """Write `stem`.svg, .png and .pdf; equal figures give equal bytes.

    svg and pdf hold only the drawing, for pages and papers with their own captions; the svg also stores title and
    caption for screen readers. The png has the title, with the scale, above the drawing and the caption below it.
    """
    # The layout takes most of the time and is the same for all formats.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    # The layout's last bits depend on addresses in memory, and ids of clip paths depend on them.
    for part in figure.subfigs:
        part.bbox_relative.set_points(part.bbox_relative.get_points().round(6))
    for axes in figure.axes:
        axes.set_position(Bbox(axes.get_position(original=True).get_points().round(6)))
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
    """Write title and caption around the drawing; returns the bounding box of all, in inches."""
    width, height = figure.get_size_inches()
    above = textwrap.fill(title, int(width * 10.5))
    # A figure without runs is its caption.
    below = "" if text in [part.get_text() for part in figure.texts] else textwrap.fill(text, int(width * 13.5))
    figure.text(0.1 / width, 1 + 0.08 / height, above, va="bottom", ha="left", fontsize=11, fontweight="bold")
    figure.text(0.1 / width, -0.08 / height, below, va="top", ha="left", fontsize=9.5, color="#333333")
    lines = [LINE * (1 + part.count("\n")) + 0.15 if part else 0 for part in (below, above)]
    return Bbox([[0, -lines[0]], [width, height + lines[1]]])


def not_run(axes: Axes, name: str) -> None:
    """Write into an empty panel that its run is missing."""
    axes.text(0.5, 0.5, f"not run:\n{name}", ha="center", va="center", transform=axes.transAxes, color="#555555")
    axes.set(xticks=[], yticks=[])
    axes.grid(False)


def figure_text(token: str) -> str:
    """A token as text of a figure: no formula, and code points for characters that the fonts lack."""
    shown = visible_text(token).replace("$", r"\$")
    return "".join(character if _has_glyph(character) else f"U+{ord(character):04X}" for character in shown)


@cache
def _has_glyph(character: str) -> bool:
    fonts = (font_manager.get_font(font_manager.findfont(family)) for family in ("DejaVu Sans", "DejaVu Sans Mono"))
    return all(font.get_char_index(ord(character)) for font in fonts)


def symbol_ticks(axes: Axes, symbols: list[str]) -> None:
    """Label every position of the x axis with its character, in two rows so that labels do not overlap."""
    labels = ["\n" * (k % 2) + figure_text(symbol) for k, symbol in enumerate(symbols)]
    axes.set_xticks(range(len(labels)), labels, fontsize=8.5, family="monospace", linespacing=1.0)
    axes.set_xlim(-0.8, len(labels) - 0.2)
    axes.grid(False, axis="x")
    axes.tick_params(axis="x", length=2, pad=2)
