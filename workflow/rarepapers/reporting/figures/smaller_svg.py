"""Compression of matplotlib's svg files: fewer digits and points, styles as classes, bitmaps with a palette."""

import base64
import io
import re
from collections import Counter

import numpy as np
from matplotlib.path import Path
from PIL import Image

# Coordinates are cut to a tenth of a point, but not those of a transform that scales.
COORDINATES = re.compile(r'(?<= )((?:d|points|x|y|x1|x2|y1|y2|width|height|transform(?!="[^"]*scale))=")([^"]*)(")')
LONG_NUMBER = re.compile(r"(\d+\.\d)\d+")
BITMAP = re.compile(r"data:image/png;base64,([A-Za-z0-9+/=\s]+)")
COLOURS = 32
STYLE = re.compile(r'style="([^"]*)"')
# A line from a point, not from the end of a curve: points that follow M without a letter are lines to them.
LINES = re.compile(r"(M [-\d.]+ [-\d.]+)((?:\s+L [-\d.]+ [-\d.]+)+)")
# Below, a line may be a marker, whose size is near the tolerance.
LONG = 10
NO_ROTATION = re.compile(r' transform="rotate\(-?0 [^"]*"')
# Ids of groups, which nothing refers to; those of markers and clip paths stay.
GROUP_ID = re.compile(r'(?<=<g) id="[^"]*"')
# Markers and clip paths, named by matplotlib with eleven characters, at each of their uses.
NAME = re.compile(r'(?<=["#])[mp][0-9a-f]{10}\b')
# The font of nearly all texts, which the rule for all elements can set.
FONT = "font-family: 'DejaVu Sans', 'Verdana', sans-serif"
# A text; matplotlib leaves quotes in it, which would look like those of an attribute.
TEXT = re.compile(r"(?<=>)[^<>]*\"[^<>]*(?=<)")
GROUP = re.compile(r"\n?(?:<g( [^>]*)?(?<!/)>|</g>)")


def smaller_svg(text: str) -> str:
    """The same drawing with far fewer bytes."""
    text = TEXT.sub(lambda match: match[0].replace('"', "&quot;"), text)
    text = BITMAP.sub(lambda match: f"data:image/png;base64,{_in_few_colours(match[1])}", text)
    text = COORDINATES.sub(lambda match: match[1] + LONG_NUMBER.sub(r"\1", match[2]) + match[3], text)
    text = LINES.sub(_line, NO_ROTATION.sub("", text))
    text = _without_bare_groups(GROUP_ID.sub("", re.sub(r"\s*\n\s*", "\n", text)))
    return _with_classes(_with_short_names(text.replace(f"; {FONT}", "").replace("*{", f"*{{{FONT}; ", 1)))


def _line(match: re.Match) -> str:
    """A line without the letters L, and a long one without points that lie on it, as matplotlib itself does for lines
    but not for the edges of bands."""
    numbers = [*match[1].split()[1:], *match[2].replace("L", " ").split()]
    if len(numbers) >= 2 * LONG:
        points = Path(np.array(numbers, dtype=float).reshape(-1, 2)).cleaned(simplify=True).vertices[:-1]
        numbers = [f"{number:.1f}".removesuffix(".0") for number in points.ravel()]
    return f"M {' '.join(numbers)}"


def _without_bare_groups(text: str) -> str:
    """The same without groups that have no attributes: matplotlib puts three around every tick."""
    kept = []  # for every open group whether it stays

    def shown(match: re.Match) -> str:
        if "</" in match[0]:
            return match[0] if kept.pop() else ""
        kept.append(bool(match[1]))
        return match[0] if kept[-1] else ""

    return GROUP.sub(shown, text)


def _with_short_names(text: str) -> str:
    """The same with markers and clip paths numbered: a plot of many points refers to them thousands of times."""
    numbers = {name: f"n{place}" for place, name in enumerate(dict.fromkeys(NAME.findall(text)))}
    return NAME.sub(lambda match: numbers[match[0]], text)


def _with_classes(text: str) -> str:
    """The same with a class for every style that occurs more than once."""
    numbers = Counter(STYLE.findall(text))
    classes = {style: f"c{place}" for place, style in enumerate(sorted(numbers)) if numbers[style] > 1}
    rules = "\n".join(f".{name}{{{style}}}" for style, name in classes.items())
    text = STYLE.sub(lambda match: f'class="{classes[match[1]]}"' if match[1] in classes else match[0], text)
    return text.replace("</style>", f"\n{rules}</style>", 1)


def _in_few_colours(png: str) -> str:
    """A bitmap (base64) with a palette."""
    made = io.BytesIO()
    with Image.open(io.BytesIO(base64.b64decode(png))) as picture:
        picture.quantize(COLOURS, method=Image.Quantize.FASTOCTREE).save(made, "PNG", optimize=True)
    return base64.b64encode(made.getvalue()).decode()
