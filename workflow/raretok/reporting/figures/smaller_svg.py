"""Compression of matplotlib's svg files: fewer digits, and bitmaps with a palette."""

import base64
import io
import re

from PIL import Image

# Coordinates are rounded to a tenth of a point.
COORDINATES = re.compile(r'(?<= )((?:d|points|x|y|x1|x2|y1|y2|width|height)=")([^"]*)(")')
LONG_NUMBER = re.compile(r"(\d+\.\d)\d+")
BITMAP = re.compile(r"data:image/png;base64,([A-Za-z0-9+/=\s]+)")
COLOURS = 32


def smaller_svg(text: str) -> str:
    """The same drawing with far fewer bytes."""
    text = BITMAP.sub(lambda match: f"data:image/png;base64,{_in_few_colours(match[1])}", text)
    text = COORDINATES.sub(lambda match: match[1] + LONG_NUMBER.sub(r"\1", match[2]) + match[3], text)
    return re.sub(r"\s*\n\s*", "\n", text)


def _in_few_colours(png: str) -> str:
    """A bitmap (base64) with a palette."""
    made = io.BytesIO()
    with Image.open(io.BytesIO(base64.b64decode(png))) as picture:
        picture.quantize(COLOURS, method=Image.Quantize.FASTOCTREE).save(made, "PNG", optimize=True)
    return base64.b64encode(made.getvalue()).decode()
