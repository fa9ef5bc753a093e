"""Files next to the checkpoint of an unfinished training."""

import pytest
import torch
from safetensors.torch import load_file

from rarepapers.core.errors import UserError
from rarepapers.core.files import CHECKPOINT
from rarepapers.core.tensor_files import save_tensors
from rarepapers.training.checkpoint import (
    drop_weights,
    gather_snapshots,
    load_checkpoint,
    load_weights,
    save_snapshot,
    save_weights,
    weights_path,
)


@pytest.mark.parametrize("kind", ["best", "validated"])
def test_only_weights_named_by_the_checkpoint_are_kept(tmp_path, kind):
    for step in (20, 40, 60):
        save_weights(tmp_path, kind, {"w": torch.full((2,), float(step))}, step)
    (tmp_path / f".{kind}-0000080.abc.part.safetensors").touch()  # a write that was killed
    drop_weights(tmp_path, kind, keep=[40])
    path = weights_path(tmp_path, kind, 40)
    assert list(tmp_path.iterdir()) == [path]
    # Each is written once.
    written = path.stat().st_ino
    save_weights(tmp_path, kind, {"w": torch.ones(2)}, 40)
    assert path.stat().st_ino == written
    assert load_weights(tmp_path, kind, 40)["w"].tolist() == [40, 40]
    with pytest.raises(UserError, match="cannot be read"):
        load_weights(tmp_path, kind, 60)
    drop_weights(tmp_path, kind)
    assert not list(tmp_path.iterdir())


def test_snapshots_are_merged_into_one_file(tmp_path):
    matrices = {step: torch.randn(5, 3, generator=torch.Generator().manual_seed(step)) for step in (7, 1000, 40)}
    for step, matrix in matrices.items():
        save_snapshot(tmp_path, step, matrix)
    gather_snapshots(tmp_path, [7, 40, 1000], tmp_path / "snapshots.safetensors", "run")
    gathered = load_file(tmp_path / "snapshots.safetensors")
    assert list(gathered) == ["step000007", "step000040", "step001000"]
    for step, matrix in matrices.items():
        assert torch.equal(gathered[f"step{step:06d}"], matrix.half())
    with pytest.raises(UserError, match="snapshot-0000008"):
        gather_snapshots(tmp_path, [7, 8], tmp_path / "more.safetensors", "run")
    assert not (tmp_path / "more.safetensors").exists()


def test_a_state_of_older_code_is_not_continued(tmp_path):
    """Its format may be another one, so the run begins again."""
    facts = {"run": "run", "data": "data", "sources": "older", "version": 4}
    save_tensors(tmp_path / CHECKPOINT, {"w": torch.ones(2)}, {"facts": facts})
    assert load_checkpoint(tmp_path, "run", "data", "newer") is None
