"""SentencePiece: a joint unigram model of both languages, learnt or published."""

import io
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Required, TypedDict

from rarepapers.core.errors import UserError
from rarepapers.core.files import atomic_path, write_json
from rarepapers.core.special_types import SPECIAL, UNKNOWN
from rarepapers.core.type_check import Limit, keys
from rarepapers.data.tokenizers import TOKENIZER, Published

MODEL = "tokenizer.model"
# The library's result depends on its number of threads, so that is fixed.
THREADS = 2
# AfroMT's model.
PUBLISHED_TYPES = 80_000


@keys(one_of=("types", "model"))
class SentencePiece(TypedDict, total=False):
    """A joint unigram model of SentencePiece."""

    name: Required[Literal["sentencepiece"]]
    # Pieces of a model learnt on the training split; 4 are special.
    types: Annotated[int, Limit("minimum", 8)]
    # Default: 1.
    character_coverage: Annotated[float, Limit("exclusiveMinimum", 0), Limit("maximum", 1)]
    # A published model.
    model: Published


class Sentencepiece:
    """A SentencePiece model, learnt or published. Unknown pieces are `<unk>`."""

    corpora: ClassVar[str] = "translation"
    config: ClassVar[type] = SentencePiece
    files: ClassVar[tuple[str, ...]] = (TOKENIZER, MODEL)

    def __init__(self, model: bytes, origin: str, **details):
        """model: the bytes of a model file. origin: `published` or `trained`. details: further manifest entries."""
        from sentencepiece import SentencePieceProcessor

        self._model, self._origin, self._details = model, origin, details
        self._processor = of = SentencePieceProcessor(model_proto=model)
        self._names = [
            SPECIAL[UNKNOWN] if of.is_unknown(number) or of.is_control(number) else of.id_to_piece(number)
            for number in range(of.get_piece_size())
        ]

    @staticmethod
    def types(entry: dict) -> int:
        return entry.get("types", PUBLISHED_TYPES)

    @classmethod
    def learn(cls, name: str, entry: Mapping, text: Iterable[str], **details) -> "Sentencepiece":
        """A model of `types` pieces, including special ones; UserError if the text of corpus `name` gives fewer."""
        from sentencepiece import SentencePieceTrainer

        model = io.BytesIO()
        try:
            SentencePieceTrainer.train(
                sentence_iterator=iter(text),
                model_writer=model,
                vocab_size=entry["types"],
                character_coverage=entry.get("character_coverage", 1.0),
                num_threads=THREADS,
                bos_id=0,
                pad_id=1,
                eos_id=2,
                unk_id=UNKNOWN,
                # The library silently skips longer lines.
                max_sentence_length=2**20,
                minloglevel=2,
            )
        except RuntimeError as error:
            raise UserError(
                f"SentencePiece finds no {entry['types']:,} pieces in the training text of corpus {name}; change "
                f"tokenizer.types in config/corpora.yaml (the library says: {' '.join(str(error).split())})"
            ) from error
        return cls(model.getvalue(), "trained", **details)

    @classmethod
    def read(cls, path: Path) -> "Sentencepiece":
        """A published model; raises UserError if the file is missing or invalid."""
        try:
            return cls(path.read_bytes(), "published")
        except FileNotFoundError as error:
            raise UserError(f"{path} does not exist; download it first") from error
        except RuntimeError as error:
            raise UserError(f"{path} is no SentencePiece model; get it again") from error

    @classmethod
    def load(cls, folder: Path) -> "Sentencepiece":
        return cls((folder / MODEL).read_bytes(), "trained")

    def split(self, lines: Sequence[str]) -> list[list[str]]:
        """Pieces of each line; a word-initial piece begins with U+2581."""
        names = self._names
        return [[names[number] for number in ids] for ids in self._processor.encode(list(lines), out_type=int)]

    def join(self, pieces: Sequence[str]) -> str:
        return self._processor.decode_pieces([piece for piece in pieces if piece not in SPECIAL])

    @property
    def described(self) -> dict:
        described = {"name": "sentencepiece", "model": self._origin, "pieces": len(self._names)}
        return described | self._details | {"library": f"sentencepiece {version('sentencepiece')}"}

    def save(self, folder: Path) -> None:
        with atomic_path(folder / MODEL) as temporary:
            temporary.write_bytes(self._model)
        write_json(folder / TOKENIZER, {"name": "sentencepiece"})
