"""How far an unfinished training is, read from its checkpoint without torch's help."""

import torch

from raretok.training.checkpoint import save_checkpoint
from raretok.work.run_status import saved_progress


def test_the_progress_of_a_saved_training_is_read(tmp_path):
    progress = {"step": 7, "seconds": 1.5}
    save_checkpoint(tmp_path, {"model": {"weight": torch.ones(2)}}, {"run": "r", "progress": progress})
    assert saved_progress(tmp_path) == progress


def test_no_checkpoint_and_a_damaged_one_are_no_progress(tmp_path):
    assert saved_progress(tmp_path) is None
    (tmp_path / "checkpoint.safetensors").write_bytes(b"nothing")
    assert saved_progress(tmp_path) is None
