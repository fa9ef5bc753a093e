"""BLEU of a corpus's references against themselves after preparation, in the manifest of the corpus and its reverse."""

import pytest

from rarepapers.core.errors import UserError
from rarepapers.core.files import read_json
from rarepapers.data.catalogue import PairFiles
from rarepapers.data.pairs.encode_pairs import encode_pairs
from rarepapers.data.pairs.reverse_pairs import reverse_pairs
from rarepapers.data.prepared_corpus import load_manifest
from rarepapers.data.synthetic.synthetic_pairs import write_pairs

PIECES, MERGES = {"name": "sentencepiece", "types": 300}, {"name": "bpe_joint", "merges": 150}
PLAIN = {"normalise": "none", "tokenise": "none"}
MOSES = {"normalise": "moses", "tokenise": "moses", "aggressive": True}
QUOTES = "\u201cDor kel\u201d \u2026 said \u2018kel\u2019 \u2013 the wick\u2019s moms."
COMPATIBILITY = "\u201eJa\u201c \u2026 \u00bd of it costs 20 \u2122 m\u00b2 \ufb01ne \u2026 now"


def prepare(folder, preparation, tokenizer, more="", target="en"):
    """A small synthetic corpus; `more`: a target line of training and test text."""
    write_pairs(folder, 3, {"train": 300, "valid": 20, "test": 30, "domain.second": 5})
    files = {}
    for split in ("train", "valid", "test"):
        paths = [folder / f"{split}.{side}.txt" for side in ("source", "target")]
        files[split] = [PairFiles(*paths)]
        if more and split != "valid":
            for path, line in zip(paths, ("kel", more), strict=True):
                path.write_text(path.read_text() + line + "\n")
    entry = {"kind": "translation", "languages": {"source": "xa", "target": target}}
    encode_pairs("tiny", entry | {"preparation": preparation, "tokenizer": tokenizer}, files, folder / "out")
    return load_manifest(folder / "out" / "manifest.json")


@pytest.mark.parametrize(
    ("preparation", "tokenizer", "more", "case", "least", "most"),
    [
        (PLAIN, PIECES, "", "mixed", 100, 100),
        (PLAIN | {"lower": True}, PIECES, "", "lc", 100, 100),
        (MOSES | {"lower": True}, MERGES, "", "lc", 100, 100),
        (MOSES, MERGES, QUOTES, "mixed", 80, 99),
        (PLAIN, PIECES, COMPATIBILITY, "mixed", 80, 99),
    ],
)
def test_what_preparation_loses_is_recorded(tmp_path, preparation, tokenizer, more, case, least, most):
    corpus = prepare(tmp_path, preparation, tokenizer, more)
    assert set(corpus.reference_bleu) == {"valid", "test"}
    found = corpus.reference_bleu["test"]
    assert least - 1e-9 <= found["value"] <= most + 1e-9
    assert f"case:{case}|" in found["signature"]
    assert corpus.reference_bleu["valid"]["value"] == pytest.approx(100)


def test_a_reversed_corpus_has_the_bleu_of_its_own_references(tmp_path):
    forward = prepare(tmp_path, PLAIN, PIECES, COMPATIBILITY)
    reverse_pairs("back", forward, tmp_path / "back")
    assert load_manifest(tmp_path / "back" / "manifest.json").reference_bleu["test"]["value"] == pytest.approx(100)


def test_a_language_without_blanks_needs_a_tokenizer(tmp_path):
    thai = "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e0a\u0e32\u0e27\u0e42\u0e25\u0e01" * 400
    with pytest.raises(UserError, match=r"bleu_tokenizer: \{th: char\} in the corpus's preparation"):
        prepare(tmp_path, PLAIN, PIECES, thai, "th")
    corpus = prepare(tmp_path, PLAIN | {"bleu_tokenizer": {"th": "char"}}, PIECES, thai, "th")
    assert "|tok:char|" in corpus.reference_bleu["test"]["signature"]


def test_the_data_of_a_corpus_are_the_same_without_the_record(tmp_path):
    """Runs of corpora that were prepared before it was recorded stay valid."""
    corpus, path = prepare(tmp_path, PLAIN, PIECES), tmp_path / "out" / "manifest.json"
    path.write_text(path.read_text().replace("reference_bleu", "unknown"))
    assert "unknown" in read_json(path)
    older = load_manifest(path)
    assert (older.sha256, older.reference_bleu) == (corpus.sha256, {})
