"""Figures embedded in pages: data URLs, sizes and descriptions for screen readers."""

import re
from pathlib import Path
from urllib.parse import quote
from xml.etree import ElementTree

from markupsafe import Markup

DESCRIPTION = "{http://purl.org/dc/elements/1.1/}description"
# Characters that a data: URL in a quoted attribute may hold unescaped.
SAFE = " <>=/:;,.-()'!*+?@$[]{}|^`~\n"


def as_data(path: Path) -> Markup:
    """An svg as a data: URL for a quoted attribute, without its metadata, which the page repeats as text."""
    text = path.read_text(encoding="utf-8")
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    # Of the two kinds of quotes, only double ones take three bytes in such a URL.
    text = re.sub(r'="([^"]*)"', lambda value: "='" + value[1].replace("'", "&#39;") + "'", text)
    return Markup("data:image/svg+xml," + quote(text, safe=SAFE))


def size(path: Path) -> tuple[int, int]:
    """Width and height of an svg in points, which reserve its place on the page."""
    _, root = next(ElementTree.iterparse(path, events=("start",)))
    return tuple(round(float(root.get(side).removesuffix("pt"))) for side in ("width", "height"))


def description(svg: Path) -> str:
    """The caption that `figures.style.save` stored in an svg; empty if it has none."""
    for _, element in ElementTree.iterparse(svg):
        if element.tag == DESCRIPTION:
            return " ".join((element.text or "").split())
        if element.tag.endswith("}metadata"):
            break
    return ""


def smallest(svg: Path) -> float:
    """The smallest font size of an svg in points; 10 if it sets none."""
    sizes = re.findall(r"font-size: ([\d.]+)px", svg.read_text(encoding="utf-8"))
    return min(map(float, sizes), default=10.0)
