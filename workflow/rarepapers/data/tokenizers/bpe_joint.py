"""BPE of subword-nmt, learnt on both sides of a parallel text together."""

import io
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import redirect_stderr
from importlib.metadata import version
from pathlib import Path
from typing import ClassVar, Literal, TypedDict

from rarepapers.core.errors import UserError
from rarepapers.core.files import write_json, write_text
from rarepapers.core.special_types import SEPARATOR, SPECIAL, UNKNOWN
from rarepapers.core.type_check import Positive
from rarepapers.data.tokenizers import TOKENIZER

CODES = "codes.txt"
# Size of the cache of words and their pieces, which bounds memory.
KNOWN_WORDS = 400_000


class JointBytePairs(TypedDict):
    """BPE of subword-nmt, learnt on both sides together."""

    name: Literal["bpe_joint"]
    merges: Positive


class BpeJoint:
    """Byte-pair encoding of words (Sennrich et al. 2016); pieces that do not end their word end with `@@`."""

    corpora: ClassVar[str] = "translation"
    config: ClassVar[type] = JointBytePairs
    files: ClassVar[tuple[str, ...]] = (TOKENIZER, CODES)

    def __init__(self, codes: str, **details):
        """codes: text of a merges file in subword-nmt's format. details: further manifest entries."""
        from subword_nmt.apply_bpe import BPE

        self._codes, self._details = codes, details
        self._bpe = BPE(io.StringIO(codes))

    @staticmethod
    def types(entry: dict) -> int:
        return entry["merges"]

    @classmethod
    def learn(cls, name: str, entry: dict, text: Iterable[str], **details) -> "BpeJoint":
        """Merges learnt on lines; UserError if the text gives fewer than the entry of corpus `name` asks for.

        Words that occur once are counted, but pairs that occur once are not merged.
        """
        from subword_nmt.learn_bpe import learn_bpe

        words = Counter(word for line in text for word in line.split())
        # The library breaks ties by text, so the order of words does not matter.
        listed = io.StringIO("".join(f"{word} {count}\n" for word, count in words.items()))
        codes = io.StringIO()
        with redirect_stderr(io.StringIO()):
            learn_bpe(listed, codes, entry["merges"], is_dict=True)
        found = codes.getvalue().count("\n") - 1
        if found < entry["merges"]:
            raise UserError(
                f"the training text of corpus {name} gives only {found:,} BPE merges, but config/corpora.yaml asks for "
                f"{entry['merges']:,}; lower tokenizer.merges"
            )
        return cls(codes.getvalue(), **details)

    @classmethod
    def load(cls, folder: Path) -> "BpeJoint":
        return cls((folder / CODES).read_text(encoding="utf-8"))

    def split(self, lines: Sequence[str]) -> list[list[str]]:
        """Pieces of each line of words separated by blanks; a piece that equals a special type is `<unk>`."""
        if len(self._bpe.cache) > KNOWN_WORDS:
            self._bpe.cache.clear()
        return [
            [SPECIAL[UNKNOWN] if piece in SPECIAL else piece for piece in self._bpe.segment_tokens(line.split())]
            for line in lines
        ]

    def join(self, pieces: Sequence[str]) -> str:
        line = " ".join(piece for piece in pieces if piece not in SPECIAL) + " "
        return line.replace(f"{SEPARATOR} ", "").strip()

    @property
    def described(self) -> dict:
        merges = self._codes.count("\n") - self._codes.startswith("#version")
        library = f"subword-nmt {version('subword-nmt')}"
        return {"name": "bpe_joint", "merges": merges, **self._details, "library": library}

    def save(self, folder: Path) -> None:
        write_text(folder / CODES, self._codes)
        write_json(folder / TOKENIZER, {"name": "bpe_joint"})
