"""Joint subword tokenizers of parallel text: SentencePiece, or BPE by subword-nmt.

A tokenizer has `split(lines)`, which returns the pieces of each line; its inverse `join(pieces)`; `described`, its
manifest entry; and `save(folder)`, whose files `load(folder)` reads.
"""

import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import redirect_stderr
from importlib.metadata import version
from pathlib import Path

from raretok.core.errors import UserError
from raretok.core.files import atomic_path, read_json, write_json, write_text
from raretok.data.text.tokenizers import SPECIAL, TOKENIZER, UNKNOWN

MODEL, CODES = "tokenizer.model", "codes.txt"
# The library's result depends on its number of threads, so that is fixed.
THREADS = 2
# Size of the cache of words and their pieces, which bounds memory.
KNOWN_WORDS = 400_000
SEPARATOR = "@@"


class SentencePieces:
    """A SentencePiece model, learnt or published. Unknown pieces are `<unk>`."""

    def __init__(self, model: bytes, origin: str, **details):
        """model: the bytes of a model file. origin: `published` or `trained`. details: further manifest entries."""
        from sentencepiece import SentencePieceProcessor

        self._model, self._origin, self._details = model, origin, details
        self._processor = SentencePieceProcessor(model_proto=model)
        of = self._processor
        self._names = [of.id_to_piece(number) for number in range(of.get_piece_size())]
        for number in range(len(self._names)):
            if of.is_unknown(number) or of.is_control(number):
                self._names[number] = SPECIAL[UNKNOWN]

    def split(self, lines: Sequence[str]) -> list[list[str]]:
        """Pieces of each line; a word-initial piece begins with U+2581."""
        names = self._names
        return [[names[number] for number in ids] for ids in self._processor.encode(list(lines), out_type=int)]

    def join(self, pieces: Sequence[str]) -> str:
        """The line of these pieces; special types are left out."""
        return self._processor.decode_pieces([piece for piece in pieces if piece not in SPECIAL])

    @property
    def described(self) -> dict:
        """What the manifest says."""
        described = {"name": "sentencepiece", "model": self._origin, "pieces": len(self._names)}
        return described | self._details | {"library": f"sentencepiece {version('sentencepiece')}"}

    def save(self, folder: Path) -> None:
        """Write the model and its description."""
        with atomic_path(folder / MODEL) as temporary:
            temporary.write_bytes(self._model)
        write_json(folder / TOKENIZER, {"name": "sentencepiece"})


class JointBPE:
    """Byte-pair encoding of words (Sennrich et al. 2016); pieces that do not end their word end with `@@`."""

    def __init__(self, codes: str, **details):
        """codes: text of a merges file in subword-nmt's format. details: further manifest entries."""
        from subword_nmt.apply_bpe import BPE

        self._codes, self._details = codes, details
        self._bpe = BPE(io.StringIO(codes))

    def split(self, lines: Sequence[str]) -> list[list[str]]:
        """Pieces of each line of words separated by blanks; a piece that equals a special type is `<unk>`."""
        if len(self._bpe.cache) > KNOWN_WORDS:
            self._bpe.cache.clear()
        return [
            [SPECIAL[UNKNOWN] if piece in SPECIAL else piece for piece in self._bpe.segment_tokens(line.split())]
            for line in lines
        ]

    def join(self, pieces: Sequence[str]) -> str:
        """The line of these pieces; special types are left out."""
        line = " ".join(piece for piece in pieces if piece not in SPECIAL) + " "
        return line.replace(f"{SEPARATOR} ", "").strip()

    @property
    def described(self) -> dict:
        """What the manifest says."""
        merges = self._codes.count("\n") - self._codes.startswith("#version")
        return {
            "name": "bpe_joint",
            "merges": merges,
            **self._details,
            "library": f"subword-nmt {version('subword-nmt')}",
        }

    def save(self, folder: Path) -> None:
        """Write the merges and their description."""
        write_text(folder / CODES, self._codes)
        write_json(folder / TOKENIZER, {"name": "bpe_joint"})


def learn(name: str, entry: Mapping, lines: Iterable[str], **details) -> SentencePieces | JointBPE:
    """The tokenizer of a corpus entry's `tokenizer`, learnt on prepared lines of both languages.

    Raises UserError if the text gives fewer pieces or merges than the entry of corpus `name` asks for.
    """
    if entry["name"] == "bpe_joint":
        return JointBPE(_learn_merges(name, entry["merges"], lines), **details)
    return SentencePieces(_learn_pieces(name, entry, lines), "trained", **details)


def load(folder: Path) -> SentencePieces | JointBPE:
    """The tokenizer written by `save` to a prepared corpus's folder."""
    if read_json(folder / TOKENIZER)["name"] == "bpe_joint":
        return JointBPE((folder / CODES).read_text(encoding="utf-8"))
    return SentencePieces((folder / MODEL).read_bytes(), "trained")


def published(path: Path) -> SentencePieces:
    """A published SentencePiece model; raises UserError if the file is missing or invalid."""
    try:
        return SentencePieces(path.read_bytes(), "published")
    except FileNotFoundError as error:
        raise UserError(f"{path} does not exist; download it first") from error
    except RuntimeError as error:
        raise UserError(f"{path} is no SentencePiece model; get it again") from error


def _learn_pieces(name: str, entry: Mapping, lines: Iterable[str]) -> bytes:
    """Bytes of a unigram SentencePiece model with `types` pieces, including special ones."""
    from sentencepiece import SentencePieceTrainer

    model = io.BytesIO()
    try:
        SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
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
    return model.getvalue()


def _learn_merges(name: str, merges: int, lines: Iterable[str]) -> str:
    """Text of a merges file; words that occur once count, pairs that occur once are not merged."""
    from subword_nmt.learn_bpe import learn_bpe

    words = Counter(word for line in lines for word in line.split())
    # The library breaks ties by text, so the order of words does not matter.
    listed = io.StringIO("".join(f"{word} {count}\n" for word, count in words.items()))
    codes = io.StringIO()
    with redirect_stderr(io.StringIO()):
        learn_bpe(listed, codes, merges, is_dict=True)
    found = codes.getvalue().count("\n") - 1
    if found < merges:
        raise UserError(
            f"the training text of corpus {name} gives only {found:,} BPE merges, but config/corpora.yaml asks for "
            f"{merges:,}; lower tokenizer.merges"
        )
    return codes.getvalue()
