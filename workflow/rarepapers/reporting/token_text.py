"""Tokens and texts of models in tables, pages and figures: visible characters, escaped for each format.

A vocabulary holds anything. `visible_text` and `one_line` replace what cannot be seen; `markdown` and `latex` write the
rest so that it is read back as it is. Text with right-to-left letters is isolated from what stands beside it, such as a
number, which a reader would otherwise show on its other side; LaTeX has code points in their place, and labels of
figures stand alone. Other HTML is escaped by Jinja, csv quoted by `csv_rows`, and svg written by
matplotlib, whose fonts lack most scripts (`figures.style.figure_text`).
"""

import re
import unicodedata

from markupsafe import Markup, escape

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
# Word-initial marks of tokens: GPT-2's blank, SentencePiece's mark.
BLANKS = str.maketrans({" ": "␣", "▁": "␣", "\n": "\\n", "\t": "\\t"})
# Letters and symbols without ink: Hangul fillers, the empty Braille cell.
WITHOUT_INK = frozenset("\u115f\u1160\u3164\uffa0\u2800")
# Directions of right-to-left letters and digits in Unicode, and the characters around an isolated text.
RIGHT_TO_LEFT = frozenset(["R", "AL", "AN"])
ISOLATE, END_OF_ISOLATE = "\N{FIRST STRONG ISOLATE}", "\N{POP DIRECTIONAL ISOLATE}"
# Punctuation that Markdown could interpret: anywhere, except between letters, at the start of a paragraph.
# There a number of up to nine digits with a point or bracket begins a list.
NUMBERED = "|".join(rf"(?<=^[0-9]{{{digits}}})" for digits in range(1, 10))
MARKDOWN = re.compile(rf"[\\|*<`\[&~]|(?<![^\W_])_|_(?![^\W_])|^[#>]|^[-+](?=[\s-]|$)|(?:{NUMBERED})[.)](?=\s|$)")
LATEX = {
    "\\": "\\textbackslash{}",
    "&": "\\&",
    "%": "\\%",
    "$": "\\$",
    "#": "\\#",
    "_": "\\_",
    "{": "\\{",
    "}": "\\}",
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "±": "$\\pm$",
    "–": "--",
    "␣": "\\textvisiblespace{}",
    "†": "$\\dagger$",
    "↑": "$\\uparrow$",
    "↓": "$\\downarrow$",
    "σ": "$\\sigma$",
    "‡": "$\\ddagger$",
    "…": "\\dots{}",
    "—": "---",
    "‘": "`",
    "’": "'",
    "“": "``",
    "”": "''",
    "<": "$<$",
    ">": "$>$",
    "|": "\\textbar{}",
    '"': "\\texttt{\\char34}",  # OT1's text fonts have a curly quote in its place
    "[": "{[}",  # LaTeX would read a bracket after \\ as its argument
    "]": "{]}",
}
# Latin letters missing in LaTeX's default font encoding, OT1: without `fontenc` LaTeX would stop at them.
NOT_IN_OT1 = frozenset("«»ÐÞðþĄąĐđĘęĦħĮįĸĿŀŉŊŋŦŧŲųſ")
# Pairs that the fonts of OT1 set as one other glyph.
LIGATURES = frozenset(["--", "``", "''", "?`", "!`"])


def visible_text(token: str) -> str:
    """A token with visible blanks and line ends; characters that cannot be seen become U+FFFD.

    A combining mark without a letter gets a dotted circle.
    """
    return _seen(token.translate(BLANKS))


def one_line(text: str) -> str:
    """`text` with runs of white space as one blank; characters that cannot be seen become U+FFFD."""
    return _seen(" ".join(text.split()))


def _seen(text: str) -> str:
    shown = "".join(
        character if character.isprintable() and character not in WITHOUT_INK else REPLACEMENT for character in text
    )
    return f"\N{DOTTED CIRCLE}{shown}" if shown and unicodedata.category(shown[0]).startswith("M") else shown


def is_right_to_left(text: str) -> bool:
    """Whether a text has letters or digits that are written from right to left."""
    return any(unicodedata.bidirectional(character) in RIGHT_TO_LEFT for character in text)


def html(text: str) -> Markup:
    """`text` as HTML; one with right-to-left letters in an element of its own direction."""
    return Markup("<bdi>{}</bdi>").format(text) if is_right_to_left(text) else escape(text)


def markdown(text: str) -> str:
    """`text` as GitHub Markdown; one with right-to-left letters between isolating characters."""
    written = MARKDOWN.sub(r"\\\g<0>", text)
    return f"{ISOLATE}{written}{END_OF_ISOLATE}" if is_right_to_left(text) else written


def latex(text: str) -> str:
    """`text` as LaTeX for the default font encoding."""
    written = ""
    for character in text:
        piece = LATEX.get(character) or _latex_character(character)
        written += "{}" + piece if written[-1:] + piece[0] in LIGATURES else piece
    return written


def _latex_character(character: str) -> str:
    """ASCII and the Latin letters that every LaTeX has are kept; other characters become their code points."""
    known = character.isprintable() and character < "\u0180" and character not in NOT_IN_OT1
    return character if known else f"U+{ord(character):04X}"
