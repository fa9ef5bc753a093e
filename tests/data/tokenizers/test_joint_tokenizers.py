"""SentencePiece and joint BPE: determinism, joining of pieces, one-sentence errors."""

import pytest

from rarepapers.core.errors import UserError
from rarepapers.data.tokenizers import load_tokenizer, tokenizer_class
from rarepapers.data.tokenizers.bpe_joint import CODES, BpeJoint
from rarepapers.data.tokenizers.sentencepiece import MODEL, Sentencepiece

LINES = ["der Hund schläft im Haus", "the dog sleeps in the house", "die Hunde schlafen", "the dogs sleep"] * 20
SENTENCEPIECE, BPE = {"name": "sentencepiece", "types": 30}, {"name": "bpe_joint", "merges": 30}


def learn(name, entry, lines):
    return tokenizer_class(entry["name"]).learn(name, entry, lines)


@pytest.mark.parametrize("entry", [SENTENCEPIECE, BPE])
def test_lines_come_back_and_learning_is_deterministic(entry, tmp_path):
    one, other = learn("c", entry, iter(LINES)), learn("c", entry, iter(LINES))
    for tokenizer, folder in ((one, tmp_path / "a"), (other, tmp_path / "b")):
        folder.mkdir()
        tokenizer.save(folder)
    files = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert all((tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes() for file in files)
    again = load_tokenizer(tmp_path / "a")
    for line in LINES[:4]:
        split = again.split([line])[0]
        assert split == one.split([line])[0]
        assert again.join(split) == line
        assert not any(" " in piece for piece in split)
    assert one.described["name"] == entry["name"]


def test_merges_do_not_depend_on_the_order_of_lines(tmp_path):
    for name, lines in (("a", LINES), ("b", LINES[::-1])):
        (tmp_path / name).mkdir()
        learn("c", BPE, iter(lines)).save(tmp_path / name)
    assert (tmp_path / "a" / CODES).read_bytes() == (tmp_path / "b" / CODES).read_bytes()


def test_sentencepiece_maps_unseen_characters_to_unk():
    tokenizer = learn("c", SENTENCEPIECE, iter(LINES))
    assert "<unk>" in tokenizer.split(["the ☃"])[0]
    assert tokenizer.join([*tokenizer.split(["the"])[0], "<unk>", "</s>", *tokenizer.split(["dog"])[0]]) == "the dog"
    assert tokenizer.described["pieces"] == 30


def test_bpe_equals_subword_nmt_and_has_no_special_types():
    # Merges: lo, and low at the end of a word.
    tokenizer = learn("c", {"name": "bpe_joint", "merges": 2}, iter(["low low low lower"]))
    assert tokenizer.split(["low lowest"]) == [["low", "lo@@", "w@@", "e@@", "s@@", "t"]]
    assert tokenizer.join(["low@@", "e@@", "s@@", "t", "<unk>", "low"]) == "lowest low"
    assert tokenizer.described["merges"] == 2
    whole = BpeJoint("#version: 0.2\n< p\n<p ad\na d\n<p ad>\n")
    assert "<pad>" not in whole.split(["<pad>"])[0]


def test_a_text_too_small_for_its_vocabulary_is_refused():
    with pytest.raises(UserError, match=r"no 9,000 pieces in the training text of corpus c; change tokenizer.types"):
        learn("c", {"name": "sentencepiece", "types": 9000}, iter(LINES))
    with pytest.raises(UserError, match=r"corpus c gives only \d+ BPE merges, but .* asks for 5,000"):
        learn("c", {"name": "bpe_joint", "merges": 5000}, iter(LINES))


def test_a_published_model(tmp_path):
    learn("c", SENTENCEPIECE, iter(LINES)).save(tmp_path)
    tokenizer = Sentencepiece.read(tmp_path / MODEL)
    assert tokenizer.described["model"] == "published"
    (tmp_path / "bad.model").write_bytes(b"no model")
    with pytest.raises(UserError, match=r"bad.model is no SentencePiece model"):
        Sentencepiece.read(tmp_path / "bad.model")
    with pytest.raises(UserError, match=r"none.model does not exist"):
        Sentencepiece.read(tmp_path / "none.model")
