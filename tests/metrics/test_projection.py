"""Principal components and distances in their plane."""

import numpy as np
import pytest

from rarepapers.metrics.projection import (
    plane,
    relative_singular_values,
    relative_translation_distance,
    translation_distance,
)

RNG = np.random.default_rng(0)


def test_coordinates_are_along_the_covariances_eigenvectors():
    w = RNG.normal(size=(30, 6)) * [5, 4, 1, 1, 1, 1]
    centred = w - w.mean(0)
    values, vectors = np.linalg.eigh(centred.T @ centred)
    points = plane(w, centred=True)
    for component, j in enumerate(np.argsort(-values)[:2]):
        vector = vectors[:, j] * np.sign(vectors[np.abs(vectors[:, j]).argmax(), j])
        np.testing.assert_allclose(points[:, component], centred @ vector, atol=1e-9)


def test_a_shift_changes_nothing_and_distances_survive_a_rotation():
    w = RNG.normal(size=(20, 5)) * [5, 4, 1, 1, 1]
    points = plane(w, centred=True)
    np.testing.assert_allclose(plane(w + 7.0, centred=True), points, atol=1e-9)
    rotation = np.linalg.qr(RNG.normal(size=(5, 5)))[0]
    rotated = plane(w @ rotation, centred=True)
    assert translation_distance(rotated) == pytest.approx(translation_distance(points), rel=1e-9)


def test_the_sign_is_fixed():
    # The largest entry of the only direction is the first, so coordinates rise with it.
    w = np.outer([-1.0, 0.0, 1.0], [0.9, -0.3])
    for sign in (1, -1):
        points = plane(sign * w, centred=True)
        assert np.sign(points[:, 0]).tolist() == (np.array([-1, 0, 1]) * sign).tolist()
        assert np.abs(points[:, 1]).max() < 1e-12


@pytest.mark.parametrize("shape", [(1, 3), (4, 1), (2, 2)])
def test_odd_sizes_give_two_columns(shape):
    points = plane(RNG.normal(size=shape), centred=True)
    assert points.shape == (shape[0], 2)
    assert np.isfinite(points).all()


def test_distance_is_between_a_character_and_its_translation():
    plane = np.array([[0.0, 0.0], [1.0, 1.0], [3.0, 4.0], [1.0, 2.0]])
    assert translation_distance(plane) == pytest.approx((5 + 1) / 2)


def test_the_relative_distance_divides_by_all_pairs_and_ignores_scale():
    plane = RNG.normal(size=(10, 2))
    first, second = plane[:5], plane[5:]
    pairs = [np.hypot(*(a - b)) for a in first for b in second]
    own = [np.hypot(*(a - b)) for a, b in zip(first, second, strict=True)]
    expected = np.mean(own) / np.mean(pairs)
    assert relative_translation_distance(plane) == pytest.approx(expected)
    # Shrinking embeddings bring all pairs nearer alike, translations no more than others.
    assert relative_translation_distance(0.4 * plane) == pytest.approx(expected)
    assert np.isnan(relative_translation_distance(np.zeros((4, 2))))


@pytest.mark.parametrize("shape", [(30, 6), (200, 3), (4, 7)])
@pytest.mark.parametrize("centred", [False, True])
def test_the_uncentred_plane_is_that_of_the_svd(shape, centred):
    w = np.random.default_rng(2).normal(0.5, 1, shape) * np.linspace(3, 1, shape[1])
    rows = w - w.mean(0) if centred else w
    left, values, _ = np.linalg.svd(rows, full_matrices=False)
    expected = (left * values)[:, :2]
    # Equal up to the sign of each axis.
    np.testing.assert_allclose(np.abs(plane(w, centred)), np.abs(expected), atol=1e-8)
    relative = relative_singular_values(w)
    assert relative.shape == (shape[1],)
    values = np.linalg.svd(w, compute_uv=False)
    np.testing.assert_allclose(relative[: len(values)], values / values[0], atol=1e-7)
    assert relative[0] == 1


def test_what_is_no_number_has_no_plane():
    w = np.full((4, 3), np.nan)
    assert np.isnan(plane(w, centred=False)).all()
    assert np.isnan(relative_singular_values(w)).all()
    assert np.isnan(relative_singular_values(np.zeros((4, 3)))).all()
    assert plane(np.ones((5, 1)), centred=False)[:, 1].tolist() == [0.0] * 5
