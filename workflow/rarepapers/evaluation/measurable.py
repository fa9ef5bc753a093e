"""Data for later metrics of a trained model, without its weights: `measurable.npz`.

It holds three things. Matrices: the output embedding and, if the model has them, an untied input embedding and the
output bias. Tokens: negative log-likelihood and rank of every target of a text. Predictions: the types that are the arg
max at some position.

Tokens are sorted by target id, with the count of each type. Any grouping of types can be measured, but the text cannot
be reconstructed. Tokens of one type keep the order of the text, so whoever has the text can put them back in place.

Compression loses precision. Matrices that fit into `MATRIX_BYTES` as float16 have a relative error of 2.4e-4 per value.
Larger ones are rounded to multiples of a fraction of each row's root mean square, chosen so that about `MATRIX_BYTES`
remain after compression, with 3.75 to 7 bits per value: an unbiased error of 0.9 to 8.9% of a row's length. Negative
log-likelihoods have 255 levels, evenly spaced on a square root scale; a level's value is the mean of its tokens, so the
mean over all tokens is exact. Ranks are exact up to 128 and within 3% above.
"""

import math
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

# Compressed size of a run's matrices: with the 610,000 pieces of WikiText-2's two texts a run takes about 2 MB.
MATRIX_BYTES = 1_000_000
LEAST_BITS, MOST_BITS = 3.75, 7.0
# Entropy in bits of a normal variable rounded to multiples of its standard deviation.
GAUSSIAN_BITS = 0.5 * math.log2(2 * math.pi * math.e)
# Number of codes of one byte; the last code of a likelihood means "not finite".
LEVELS = 256
EXACT_RANKS = 128


@dataclass(frozen=True)
class TokenScores:
    """Scores of N targets sorted by id: targets int64, nll float64 in nats, ranks int64 from 1; (N,) each."""

    targets: np.ndarray
    nll: np.ndarray
    ranks: np.ndarray


def save_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays in `numpy.load`'s format, compressed by bzip2."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, values in arrays.items():
            member = zipfile.ZipInfo(f"{name}.npy")
            member.compress_type = zipfile.ZIP_BZIP2
            with archive.open(member, "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asanyarray(values), allow_pickle=False)


def pack_matrices(matrices: Mapping[str, np.ndarray | None]) -> dict[str, np.ndarray]:
    """Packed arrays of the matrices (V x d) by name, which share `MATRIX_BYTES`; None values are skipped."""
    there = {name: np.asarray(matrix, dtype=np.float32) for name, matrix in matrices.items() if matrix is not None}
    values = sum(matrix.size for matrix in there.values())
    if 2 * values <= MATRIX_BYTES:
        return {f"{name}.values": matrix.astype(np.float16) for name, matrix in there.items()}
    bits = min(MOST_BITS, max(LEAST_BITS, 8 * MATRIX_BYTES / values))
    packed = {}
    for name, matrix in there.items():
        codes, packed[f"{name}.steps"] = _round_rows(matrix, 2 ** (bits - GAUSSIAN_BITS))
        packed[f"{name}.codes"] = _shrink(codes)
    return packed


def unpack_matrix(arrays: Mapping[str, np.ndarray], name: str) -> np.ndarray | None:
    """A kept matrix, V x d float64, or None if there is none of that name."""
    if f"{name}.values" in arrays:
        return arrays[f"{name}.values"].astype(np.float64)
    if f"{name}.codes" in arrays:
        steps = arrays[f"{name}.steps"].astype(np.float64)
        codes = np.frombuffer(zlib.decompress(arrays[f"{name}.codes"]), dtype=np.int8)
        return codes.reshape(len(steps), -1) * steps[:, None]
    return None


def pack_tokens(
    name: str, targets: np.ndarray, nll: np.ndarray, types: int, ranks: np.ndarray | None = None
) -> dict[str, np.ndarray]:
    """Packed arrays of the scores of N targets (ids below `types`); ranks are optional."""
    order = np.argsort(targets, kind="stable")
    packed = {f"{name}.counts": np.bincount(targets, minlength=types).astype(np.uint32)}
    packed[f"{name}.nll"], packed[f"{name}.nll_levels"] = _code_likelihoods(np.asarray(nll)[order])
    if ranks is not None:
        levels = rank_levels(types)
        borders = np.sqrt(levels[1:] * levels[:-1])
        packed[f"{name}.ranks"] = np.searchsorted(borders, np.asarray(ranks)[order], side="left").astype(np.uint8)
        packed[f"{name}.rank_levels"] = levels.astype(np.uint32)
    return packed


def unpack_tokens(arrays: Mapping[str, np.ndarray], name: str) -> TokenScores | None:
    """The kept scores of a text, or None if there are none of that name; ranks are empty if they were not kept."""
    if f"{name}.nll" not in arrays:
        return None
    counts = arrays[f"{name}.counts"]
    ranks = np.empty(0, dtype=np.int64)
    if f"{name}.ranks" in arrays:
        ranks = arrays[f"{name}.rank_levels"].astype(np.int64)[arrays[f"{name}.ranks"]]
    nll = arrays[f"{name}.nll_levels"][arrays[f"{name}.nll"]]
    return TokenScores(np.repeat(np.arange(len(counts)), counts), nll, ranks)


def rank_levels(types: int) -> np.ndarray:
    """The ranks that one-byte codes stand for, increasing float64: 1 to 128, then in equal ratios up to `types`."""
    if types <= LEVELS:
        return np.arange(1.0, types + 1)
    above = np.geomspace(EXACT_RANKS, types, LEVELS - EXACT_RANKS + 1)[1:]
    return np.concatenate([np.arange(1.0, EXACT_RANKS + 1), np.unique(above.round())])


def _round_rows(matrix: np.ndarray, levels: float) -> tuple[np.ndarray, np.ndarray]:
    """Codes (V x d int8) and steps (V float16) of rows, in steps of their root mean square divided by `levels`.

    A step is larger if the row's largest value would exceed 127 steps. A row that is not finite becomes NaN.
    """
    finite = np.isfinite(matrix).all(1)
    rows = np.where(finite[:, None], matrix, 0).astype(np.float64)
    steps = np.maximum(np.sqrt(np.mean(rows * rows, axis=1)) / levels, np.abs(rows).max(1) / 127)
    steps = steps.astype(np.float16)
    divisors = np.where(steps > 0, steps, 1).astype(np.float64)
    codes = np.rint(rows / divisors[:, None]).clip(-127, 127).astype(np.int8)
    return codes, np.where(finite, steps, np.float16("nan"))


def _shrink(codes: np.ndarray) -> np.ndarray:
    """Codes (int8) compressed by zlib (uint8) with Huffman coding only: nothing repeats, and bzip2 takes 7% more."""
    deflate = zlib.compressobj(level=9, strategy=zlib.Z_HUFFMAN_ONLY)
    return np.frombuffer(deflate.compress(codes.tobytes()) + deflate.flush(), dtype=np.uint8)


def _code_likelihoods(nll: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Codes (N uint8) of negative log-likelihoods, and the values (256 float64) of the codes."""
    finite = np.isfinite(nll)
    largest = nll[finite].max(initial=0.0) or 1.0
    places = np.sqrt(np.where(finite, nll, 0).clip(min=0) / largest) * (LEVELS - 2)
    codes = np.where(finite, np.rint(places), LEVELS - 1).astype(np.uint8)
    sums = np.bincount(codes, weights=nll, minlength=LEVELS)
    return codes, sums / np.maximum(np.bincount(codes, minlength=LEVELS), 1)
