"""Schematic drawing of the three ways in which a training position moves embeddings (stop_jostling, figure 1)."""

import math

from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, Wedge

from rarepapers.reporting.figures.style import BLACK, BLUE, GREEN, ORANGE

CONTEXT = "#777777"
# Looks of the embeddings and of the gradient steps.
VECTOR = {"arrowstyle": "-|>", "mutation_scale": 13, "linewidth": 1.6, "shrinkA": 0}
STEP = {"arrowstyle": "->", "mutation_scale": 14, "linewidth": 2.4, "shrinkA": 2}
# End points of the vectors. The hidden state points up, and so does its multiple, the gradient of an output embedding:
# the target's step is up, all others' are down.
HIDDEN, TARGET, RIVAL = (0.0, 2.0), (1.05, 1.5), (-1.05, 1.5)
FAR = ((-1.75, 0.25), (1.75, 0.35), (1.2, -0.55))


def draw(panels: list[Axes]) -> None:
    """Draw context alignment, target alignment and non-target marginalisation on three axes."""
    texts = (
        ("1  Context alignment", "embeddings of the input move, so that\nthe hidden state turns to the target"),
        ("2  Target alignment", "the target's embedding moves in\nthe direction of the hidden state"),
        ("3  Non-target marginalisation", "every other embedding moves in the\nopposite direction, relevant or not"),
    )
    for axes, (title, text) in zip(panels, texts, strict=True):
        axes.set(xlim=(-3.2, 3.2), ylim=(-2.05, 3.9), aspect="equal", xticks=[], yticks=[])
        axes.grid(False)
        axes.spines[:].set_visible(False)
        axes.set_title(title, loc="left", fontweight="bold").set_in_layout(False)
        axes.text(-3.2, 3.85, text, va="top", fontsize=9).set_in_layout(False)
        _vector(axes, HIDDEN, BLACK, "hidden state", (0, 0.2), "center")
        axes.plot(0, 0, "o", color=BLACK, markersize=4)
    _context(panels[0])
    _target(panels[1])
    _others(panels[2])


def _context(axes: Axes) -> None:
    _vector(axes, TARGET, GREEN, "w of the target", (0.12, 0.02), "left")
    for end, moved, name, offset in (
        ((-1.55, 0.95), (-1.15, 1.25), "w of input 1", (0.35, 0.55)),
        ((-1.75, -0.3), (-1.6, 0.15), "w of input 2", (-0.1, -0.26)),
    ):
        _vector(axes, end, CONTEXT, name, offset, "right" if offset[1] > 0 else "center")
        _step(axes, end, moved, BLUE)
    _step(axes, HIDDEN, (0.5, 1.92), BLUE)


def _target(axes: Axes) -> None:
    _vector(axes, TARGET, GREEN, "w of the target", (0.12, 0.02), "left")
    _step(axes, TARGET, _along_hidden(TARGET, 0.55), GREEN)


def _others(axes: Axes) -> None:
    # Region that thresholding leaves alone: logits (lengths along the hidden state) too far below the target's.
    axes.add_patch(Wedge((0, 0), 1.95, 152, 388, color=ORANGE, alpha=0.13, linewidth=0))
    _vector(axes, TARGET, GREEN, "target", (0.12, 0.02), "left")
    _vector(axes, RIVAL, CONTEXT, "rival", (-0.1, 0.08), "right")
    _step(axes, RIVAL, _along_hidden(RIVAL, -0.55), ORANGE)
    for end in FAR:
        _vector(axes, end, CONTEXT, "", (0, 0), "center")
        _step(axes, end, _along_hidden(end, -0.42), ORANGE)
    said = axes.text(-0.3, -1.05, "irrelevant:\nspared by\nthresholding", fontsize=9, ha="center", va="center")
    said.set_in_layout(False)


def _along_hidden(end: tuple, length: float) -> tuple:
    """The end of a step of an output embedding: parallel to the hidden state."""
    size = math.hypot(*HIDDEN)
    return end[0] + length * HIDDEN[0] / size, end[1] + length * HIDDEN[1] / size


def _vector(axes: Axes, end: tuple, colour: str, name: str, offset: tuple, side: str) -> None:
    axes.add_patch(FancyArrowPatch((0, 0), end, color=colour, shrinkB=0, **VECTOR))
    axes.text(
        end[0] + offset[0], end[1] + offset[1], name, color=colour, ha=side, va="center", fontsize=9
    ).set_in_layout(False)


def _step(axes: Axes, start: tuple, end: tuple, colour: str) -> None:
    axes.add_patch(FancyArrowPatch(start, end, color=colour, shrinkB=0, **STEP))
