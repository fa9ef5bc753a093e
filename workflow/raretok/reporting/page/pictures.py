"""A figure's drawing as the pages hold it: inside the page, with its size and a description for screen readers."""

import re
from pathlib import Path
from urllib.parse import quote
from xml.etree import ElementTree

from markupsafe import Markup

from raretok.core.errors import UserError

DESCRIPTION = "{http://purl.org/dc/elements/1.1/}description"
# What may stand as it is in a quoted attribute that holds a data: URL.
SAFE = " <>=/:;,.-()'!*+?@$[]{}|^`~\n"


def drawing(stem: Path) -> Path:
    """The svg of a figure; UserError where there is none."""
    path = Path(f"{stem}.svg")
    if not path.exists():
        raise UserError(f"{path} does not exist; make it with `snakemake {path}`.")
    return path


def as_data(path: Path) -> Markup:
    """An svg as a data: URL for a quoted attribute, without its metadata, which the page has in its own words."""
    text = path.read_text(encoding="utf-8")
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    return Markup("data:image/svg+xml," + quote(text, safe=SAFE))


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
    sizes = re.findall(r"font-size: ([\d.]+)px", svg.read_text(encoding="utf-8"))
    return min(map(float, sizes), default=10.0)
