"""NumPy alignment model against the literal implementation, and symmetrisation."""

import fast_align_model
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarepapers.data.alignment import align_command, diagonal_model
from rarepapers.data.alignment.links import read_links
from rarepapers.data.alignment.sentences import read_sentences
from rarepapers.data.alignment.symmetrise import SYMMETRISATIONS
from rarepapers.data.synthetic.synthetic_pairs import write_pairs


@pytest.mark.parametrize("cells", [diagonal_model.CELLS, 300])
def test_links_are_those_of_the_model_written_out(tmp_path, monkeypatch, cells):
    monkeypatch.setattr(diagonal_model, "CELLS", cells)
    write_pairs(tmp_path, seed=5, pairs={"train": 250})
    source, target = tmp_path / "train.source.txt", tmp_path / "train.target.txt"
    align_command.align(source, target, tmp_path / "links", tmp_path / "links.json", "numpy", "grow-diag-final-and")
    expected = fast_align_model.align(*zip(*read_sentences(source, target), strict=True))
    assert [set(links) for links in read_links(tmp_path / "links")] == expected


links = st.sets(st.tuples(st.integers(0, 6), st.integers(0, 6)))


@given(links, links)
def test_directions_are_put_together_as_written_out(forward, backward):
    found = {name: put_together(forward, backward) for name, put_together in SYMMETRISATIONS.items()}
    assert found["grow-diag-final-and"] == fast_align_model.grow_diag_final_and(forward, backward)
    assert found["intersect"] <= found["grow-diag"] <= found["grow-diag-final-and"] <= found["union"]
    assert found["grow-diag"] == SYMMETRISATIONS["grow-diag"](backward, forward)
