"""The default aligner against the model written out."""

import fast_align_model

from raretok.alignment import systran
from raretok.alignment.sentences import read_sentences, write_joined
from raretok.data.synthetic_pairs import write_pairs


def test_systran_is_the_model_written_out(tmp_path):
    write_pairs(tmp_path, seed=5, pairs={"train": 250})
    source, target = tmp_path / "train.source.txt", tmp_path / "train.target.txt"
    pairs = list(read_sentences(source, target))
    write_joined(source, target, tmp_path / "joined")
    found = [set(links) for links in systran.align(source, target, tmp_path / "joined", tmp_path)]
    expected = fast_align_model.align(*zip(*pairs, strict=True), link_tension=systran.LINK_TENSION)
    same = sum(len(a & b) for a, b in zip(found, expected, strict=True))
    total = sum(len(a | b) for a, b in zip(found, expected, strict=True))
    # Ties are the implementation's own.
    assert same / total > 0.985
