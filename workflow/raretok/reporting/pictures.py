"""A figure's drawing as the pages hold it: inside the page, with its size and a description for screen readers."""

import base64
import io
import re
from pathlib import Path
from urllib.parse import quote
from xml.etree import ElementTree

from markupsafe import Markup
from PIL import Image

from raretok.errors import UserError

DESCRIPTION = "{http://purl.org/dc/elements/1.1/}description"
# What may stand as it is in a quoted attribute that holds a data: URL.
SAFE = " <>=/:;,.-()'!*+?@$[]{}|^`~\n"
# Digits behind the point that coordinates of the drawing keep, in points.
COORDINATES = re.compile(r'(?<= )((?:d|points|x|y|x1|x2|y1|y2|width|height)=")([^"]*)(")')
BITMAP = re.compile(r"data:image/png;base64,([A-Za-z0-9+/=\s]+)")
QUALITY = 75  # of the points of a scatter plot as a compressed picture
LONG_NUMBER = re.compile(r"(\d+\.\d)\d+")


def drawing(stem: Path) -> Path:
    """The svg of a figure; UserError where there is none."""
    path = Path(f"{stem}.svg")
    if not path.exists():
        raise UserError(f"{path} does not exist; make it with `snakemake {path}`.")
    return path


def as_data(path: Path) -> Markup:
    """An svg as a data: URL for a quoted attribute, without the digits that nobody sees."""
    text = path.read_text(encoding="utf-8")
    text = text[text.index("<svg") :]
    text = BITMAP.sub(lambda match: "data:image/webp;base64," + _smaller(match[1]), text)
    text = COORDINATES.sub(lambda match: match[1] + LONG_NUMBER.sub(r"\1", match[2]) + match[3], text)
    return Markup("data:image/svg+xml," + quote(re.sub(r"\s*\n\s*", "\n", text), safe=SAFE))


def _smaller(png: str) -> str:
    """A bitmap inside an svg (base64 of a png) as webp, which is a fifth of it."""
    made = io.BytesIO()
    with Image.open(io.BytesIO(base64.b64decode(png))) as picture:
        picture.save(made, "WEBP", quality=QUALITY, method=6)
    return base64.b64encode(made.getvalue()).decode()


def size(path: Path) -> tuple[int, int]:
    """Width and height of an svg in points: the page keeps its place by their ratio."""
    _, root = next(ElementTree.iterparse(path, events=("start",)))
    return tuple(round(float(root.get(side).removesuffix("pt"))) for side in ("width", "height"))


def description(svg: Path) -> str:
    """What `figures.style.save` wrote into an svg: the caption, which says what is seen; empty where it has none."""
    for _, element in ElementTree.iterparse(svg):
        if element.tag == DESCRIPTION:
            return " ".join((element.text or "").split())
        if element.tag.endswith("}metadata"):
            break
    return ""


def smallest(svg: Path) -> float:
    """The size of the smallest letters of an svg in points; 10 where it names none."""
    sizes = re.findall(r"font: (?:[a-z]+ )*([\d.]+)px", svg.read_text(encoding="utf-8"))
    return min(map(float, sizes), default=10.0)
