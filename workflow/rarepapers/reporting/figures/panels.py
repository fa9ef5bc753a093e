"""Panels that figures consist of."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch

from rarepapers.metrics.clusters import MASKS
from rarepapers.reporting.figures.style import HIGH, LOW


def mean_and_band(axes: Axes, x, values: np.ndarray, label: str | None, look: dict, **more) -> np.ndarray:
    """Plot the mean of values (seeds x points) with a band of one sample standard deviation; return the mean.

    Where a seed is not finite, neither is the mean, and line and band have a gap (`shown.seeds_note` names the seed).
    """
    import seaborn  # takes a second to import, and only figures with curves need it

    x = np.asarray(x)
    with np.errstate(invalid="ignore", over="ignore"):
        mean = values.mean(0)
    stretches = np.ma.clump_unmasked(np.ma.masked_invalid(mean))
    if not stretches:
        axes.plot([], [], label=label, linewidth=1.8, **look, **more)
    for stretch in stretches:
        seaborn.lineplot(
            x=np.tile(x[stretch], len(values)),
            y=values[:, stretch].ravel(),
            ax=axes,
            label=label,
            legend=False,
            errorbar="sd",
            err_kws={"alpha": 0.15, "linewidth": 0},
            linewidth=1.8,
            **look,
            **more,
        )
        label = None
    return mean


def draw_mask(axes: Axes, names: np.ndarray) -> None:
    """Draw the expected relation of every pair of tokens as coloured areas; names: V x V, in the figure's order."""
    kinds = ["", "NA", "UC", "LC", "ID", *MASKS[3:]]
    colours = ["#FFFFFF", "#CFCFCF", "#A9CCE8", "#F3C9A5", "#000000", "#009E73", "#CC3377", "#6A3D9A"]
    codes = np.vectorize(kinds.index)(names)
    axes.imshow(codes, cmap=ListedColormap(colours), vmin=0, vmax=len(kinds) - 1, interpolation="nearest")
    axes.set_title("Expected clusters", loc="left")
    language_ticks(axes, len(names) // 2)
    patches = [Patch(facecolor=c, edgecolor="#555555", label=k) for k, c in zip(kinds[1:], colours[1:], strict=True)]
    axes.legend(
        handles=patches,
        ncol=4,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.08),
        frameon=False,
        fontsize=9,
        handlelength=1,
        columnspacing=0.8,
        handletextpad=0.4,
    )


def language_ticks(axes: Axes, n: int) -> None:
    """Label the two halves of a matrix over the tokens of two languages with n characters each."""
    for set_ticks in (axes.set_xticks, axes.set_yticks):
        set_ticks([n / 2, 1.5 * n], ["HR", "LR"])
    axes.axhline(n - 0.5, color="#888888", linewidth=0.8)
    axes.axvline(n - 0.5, color="#888888", linewidth=0.8)
    axes.tick_params(length=0)
    axes.grid(False)


def draw_plane(axes: Axes, plane: np.ndarray, counts: np.ndarray) -> None:
    """Draw embeddings of two languages in a plane (2n x 2), with lines that join the versions of a character.

    counts: n; the five rarest characters are crosses.
    """
    n = len(counts)
    high, low = plane[:n], plane[n:]
    pairs = np.stack([high, low, np.full_like(high, np.nan)], axis=1).reshape(-1, 2)
    axes.plot(*pairs.T, color="#BBBBBB", linewidth=0.8, zorder=1, label="the same character")
    rarest = np.argsort(counts, kind="stable")[:5]
    others = np.setdiff1d(np.arange(n), rarest)
    for points, colour, marker, cross, name in (
        (high, HIGH, "o", "x", "high-resource"),
        (low, LOW, "^", "+", "low-resource"),
    ):
        look = {"s": 30, "marker": marker, "edgecolor": "white", "linewidth": 0.4, "zorder": 2}
        axes.scatter(*points[others].T, color=colour, label=name, **look)
        look = {"s": 80, "marker": cross, "linewidth": 2, "zorder": 3}
        axes.scatter(*points[rarest].T, color=colour, label=f"{name}, five rarest", **look)
