"""Preparation of lines of parallel text before tokenisation, and its inverse.

Moses' punctuation normalisation, tokeniser and detokeniser come from the library sacremoses; cleaning by length and
ratio is that of Moses' clean-corpus-n.perl.
"""

import math
import re
import unicodedata
from collections.abc import Mapping
from functools import cached_property
from importlib.metadata import version

# Pattern of a hyphen in Moses' compound splitting (`{(\S)-(\S)}{$1 ##AT##-##AT## $2}g`).
COMPOUND = re.compile(r"(\S)-(\S)")


class Preparation:
    """The `preparation` of a corpus's entry for lines in one language.

    normalise: punctuation and non-printing characters, or `none`. tokenise: Moses tokens, or `none`; aggressive: split
    words at hyphens, ` @-@ `. lower: lower case. Languages that Moses does not know are tokenised by its general rules.
    """

    def __init__(self, entry: Mapping, language: str):
        self.normalises = entry.get("normalise", "none") == "moses"
        self.tokenises = entry.get("tokenise", "none") == "moses"
        self._aggressive, self._lower = entry.get("aggressive", False), entry.get("lower", False)
        self._language = language

    def apply(self, line: str) -> str:
        """The prepared line, from which pieces are made."""
        if self.normalises:
            line = only_printing(self._normaliser.normalize(line))
        if self.tokenises:
            line = self.words(line)
        if self._lower:
            line = line.lower()
        return " ".join(line.split())

    def undo(self, line: str) -> str:
        """Plain text of a prepared line; changes of case and punctuation are not undone."""
        return self._detokeniser.detokenize(line.split()) if self.tokenises else line

    def words(self, line: str) -> str:
        """Moses tokens of plain text, even if the pieces are not made from them."""
        return self._tokeniser.tokenize(line, aggressive_dash_splits=self._aggressive, return_str=True)

    def length(self, line: str) -> int:
        """Number of Moses tokens of a line returned by `apply`."""
        return len((line if self.tokenises else self.words(line)).split())

    @cached_property
    def _normaliser(self):
        from sacremoses import MosesPunctNormalizer

        return MosesPunctNormalizer(lang=self._language)

    @cached_property
    def _tokeniser(self):
        from sacremoses import MosesTokenizer

        return MosesTokenizer(lang=self._language)

    @cached_property
    def _detokeniser(self):
        from sacremoses import MosesDetokenizer

        return MosesDetokenizer(lang=self._language)


def preparations_of(entry: Mapping, languages: Mapping[str, str]) -> dict[str, Preparation]:
    """The preparation of each side; languages: code of `source` and `target`."""
    return {side: Preparation(entry, language) for side, language in languages.items()}


def only_printing(line: str) -> str:
    """The line with a blank for each non-printing character, as in Moses' remove-non-printing-char.perl.

    These are Unicode's categories C: controls, soft hyphens and zero-width blanks, private use, unassigned. sacremoses
    deletes them, which joins words.
    """
    if line.isprintable():
        return line
    return "".join(" " if unicodedata.category(character).startswith("C") else character for character in line)


def described(entry: Mapping) -> dict:
    """The manifest entry of a preparation: the corpus's entry and the version of sacremoses."""
    moses = "moses" in (entry.get("normalise"), entry.get("tokenise"))
    return dict(entry) | ({"library": f"sacremoses {version('sacremoses')}"} if moses else {})


def split_compounds(words: str) -> str:
    """Moses tokens with hyphenated words split, as in the compound-split BLEU of WMT14 En-De.

    A hyphen becomes one token; the ` @-@ ` of aggressive tokens matches at its own hyphen and becomes three.
    """
    return COMPOUND.sub(r"\1 ##AT##-##AT## \2", words)


def reason_to_drop(source: int, target: int, entry: Mapping) -> str | None:
    """The reason to leave out a training pair, its lengths or their ratio; None if it stays.

    source, target: lengths in the unit of the entry's `measure`. As in clean-corpus-n.perl, a length equal to
    max_length and a ratio equal to max_ratio are kept.
    """
    longer, shorter = max(source, target), min(source, target)
    if longer > entry.get("max_length", math.inf):
        return "length"
    if longer > entry.get("max_ratio", math.inf) * shorter:
        return "ratio"
    return None
