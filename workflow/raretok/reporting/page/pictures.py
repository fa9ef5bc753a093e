"""A figure's file as the page holds it: as data, with its size and the words of who does not see it."""

import base64
import struct
from pathlib import Path
from xml.etree import ElementTree

from raretok.core.errors import UserError

TYPES = {".svg": "image/svg+xml", ".png": "image/png"}
DESCRIPTION = "{http://purl.org/dc/elements/1.1/}description"


def smaller(stem: Path) -> Path:
    """The svg or the png of a figure, whichever is the smaller file; UserError where one is missing."""
    svg, png = Path(f"{stem}.svg"), Path(f"{stem}.png")
    if not svg.exists() or not png.exists():
        raise UserError(f"{svg} or its png does not exist; make it with `snakemake {svg}`.")
    return min(svg, png, key=lambda path: path.stat().st_size)


def as_data(path: Path) -> str:
    """A file's bytes as a data: URL."""
    return f"data:{TYPES[path.suffix]};base64,{base64.b64encode(path.read_bytes()).decode()}"


def size(path: Path) -> tuple[int, int]:
    """Width and height of a picture, in points (svg) or dots (png): the page keeps its place by their ratio."""
    if path.suffix == ".png":
        with open(path, "rb") as file:
            return struct.unpack(">II", file.read(24)[16:])
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
