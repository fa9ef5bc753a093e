"""Files of arrays and tensors: damaged ones are refused by name."""

import re

import numpy as np
import pytest
import torch

from rarepapers.core.errors import UserError
from rarepapers.core.files import read_arrays, read_json, write_json
from rarepapers.core.tensor_files import load_tensors, save_tensors


def flip_a_bit(path, at):
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


@pytest.fixture
def tensors(tmp_path):
    path = tmp_path / "state.safetensors"
    tensors = {"a": torch.arange(6.0).view(2, 3), "b": torch.tensor(True), "c": torch.ones(3, dtype=torch.bfloat16)}
    save_tensors(path, tensors, {"step": 3})
    return path, tensors


def test_tensors_and_metadata_round_trip(tensors):
    path, expected = tensors
    found, metadata = load_tensors(path, "delete it")
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    assert metadata["step"] == 3


@pytest.mark.parametrize("at", [-1, -12])
def test_a_flipped_bit_in_a_tensor_is_detected(tensors, at):
    path, _ = tensors
    flip_a_bit(path, at)
    with pytest.raises(UserError, match=r"state\.safetensors is damaged: its checksum does not match; delete it"):
        load_tensors(path, "delete it")


def test_truncated_tensors_are_refused(tensors):
    path, _ = tensors
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(UserError, match=r"state\.safetensors cannot be read .*; delete it"):
        load_tensors(path, "delete it")


def test_damaged_arrays_are_refused(tmp_path):
    path = tmp_path / "arrays.npz"
    np.savez_compressed(path, a=np.arange(1000))
    flip_a_bit(path, 200)
    with pytest.raises(UserError, match=r"arrays\.npz is damaged .*; delete it and run the workflow again"):
        read_arrays(path)
    path.write_bytes(b"no archive")
    with pytest.raises(UserError, match=r"arrays\.npz is damaged"):
        read_arrays(path)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1.5E+400"])
def test_a_number_in_json_that_is_not_finite_is_refused_with_its_line(tmp_path, number):
    path = tmp_path / "metrics.json"
    path.write_text(f'{{"note": "{number} \\" {number}",\n "a": [1.5,\n {number}], "b": {number}}}', encoding="utf-8")
    with pytest.raises(
        UserError, match=rf"metrics\.json, line 3: {re.escape(number)} is not a finite number; correct it"
    ):
        read_json(path)


def test_finite_json_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "value.json"
    value = {"a": [1.5, -2, 1e300, 5e-324], "b": "NaN", "c": {"d": None, "e": True}}
    write_json(path, value)
    assert read_json(path) == value
    path.write_text("{")
    with pytest.raises(ValueError, match="Expecting"):
        read_json(path)
