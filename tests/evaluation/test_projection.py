"""Principal components and distances in their plane."""

import numpy as np
import pytest

from raretok.evaluation.projection import principal_components, translation_distance

RNG = np.random.default_rng(0)


def test_coordinates_are_those_of_the_covariances_eigenvectors():
    w = RNG.normal(size=(30, 6)) * [5, 4, 1, 1, 1, 1]
    centred = w - w.mean(0)
    values, vectors = np.linalg.eigh(centred.T @ centred)
    plane = principal_components(w)
    for component, j in enumerate(np.argsort(-values)[:2]):
        vector = vectors[:, j] * np.sign(vectors[np.abs(vectors[:, j]).argmax(), j])
        np.testing.assert_allclose(plane[:, component], centred @ vector, atol=1e-9)


def test_a_shift_changes_nothing_and_distances_survive_a_rotation():
    w = RNG.normal(size=(20, 5)) * [5, 4, 1, 1, 1]
    plane = principal_components(w)
    np.testing.assert_allclose(principal_components(w + 7.0), plane, atol=1e-9)
    rotation = np.linalg.qr(RNG.normal(size=(5, 5)))[0]
    rotated = principal_components(w @ rotation)
    assert translation_distance(rotated) == pytest.approx(translation_distance(plane), rel=1e-9)


def test_the_sign_is_settled():
    # The largest entry of the only direction is the first: its coordinates rise with it.
    w = np.outer([-1.0, 0.0, 1.0], [0.9, -0.3])
    for sign in (1, -1):
        plane = principal_components(sign * w)
        assert np.sign(plane[:, 0]).tolist() == (np.array([-1, 0, 1]) * sign).tolist()
        assert np.abs(plane[:, 1]).max() < 1e-12


@pytest.mark.parametrize("shape", [(1, 3), (4, 1), (2, 2)])
def test_odd_sizes_give_two_columns(shape):
    plane = principal_components(RNG.normal(size=shape))
    assert plane.shape == (shape[0], 2)
    assert np.isfinite(plane).all()


def test_distance_is_between_a_character_and_its_translation():
    plane = np.array([[0.0, 0.0], [1.0, 1.0], [3.0, 4.0], [1.0, 2.0]])
    assert translation_distance(plane) == pytest.approx((5 + 1) / 2)
