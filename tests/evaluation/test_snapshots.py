"""Snapshots of the output matrix."""

import numpy as np
import pytest
from safetensors.numpy import save_file

from rarepapers.core.errors import UserError
from rarepapers.evaluation.snapshots import PLANES, measure_snapshots
from rarepapers.metrics.projection import plane
from raretok.metrics.group_statistics import Groups
from raretok.metrics.isotropy import isotropy

GROUPS = Groups(("freq", "med", "rare"), (6, 15), 20)


def saved(tmp_path, steps):
    rng = np.random.default_rng(0)
    matrices = {step: rng.normal(0.1, 1, (20, 5)).astype(np.float16) for step in steps}
    save_file({f"step{step:06d}": matrix for step, matrix in matrices.items()}, tmp_path / "snapshots.safetensors")
    return {step: matrix.astype(np.float64) for step, matrix in matrices.items()}


def test_each_snapshot_is_measured_in_order(tmp_path):
    matrices = saved(tmp_path, [3500, 100, 1_500_000])
    arrays = measure_snapshots(tmp_path / "snapshots.safetensors", GROUPS)
    assert arrays["snapshots.steps"].tolist() == [100, 3500, 1_500_000]
    for i, step in enumerate((100, 3500, 1_500_000)):
        w = matrices[step]
        parts = [w[:6], w[6:15], w[15:]]
        assert arrays["snapshots.isotropy_sign_free"][i] == pytest.approx([isotropy(part) for part in parts])
        unit = w / np.linalg.norm(w, axis=1, keepdims=True)
        assert arrays["snapshots.cosine_rare_frequent"][i] == pytest.approx((unit[15:] @ unit[:6].T).mean())
        for group, part in enumerate(parts):
            off = (part @ part.T)[~np.eye(len(part), dtype=bool)]
            assert arrays["snapshots.inner_product"][i, group] == pytest.approx(off.mean())
        np.testing.assert_allclose(arrays["snapshots.svd"][i], plane(w, centred=False), atol=1e-5)
        np.testing.assert_allclose(arrays["snapshots.pca"][i], plane(w, centred=True), atol=1e-5)
    assert arrays["snapshots.svd"].dtype == np.float32
    assert arrays["snapshots.isotropy_sign_free"].shape == (3, 3)


@pytest.mark.parametrize(("number", "kept"), [(PLANES, True), (PLANES + 1, False)])
def test_projections_of_many_snapshots_are_not_kept(tmp_path, number, kept):
    saved(tmp_path, range(1, number + 1))
    arrays = measure_snapshots(tmp_path / "snapshots.safetensors", GROUPS)
    assert len(arrays["snapshots.steps"]) == number
    assert ("snapshots.svd" in arrays) == ("snapshots.pca" in arrays) == kept


def test_no_snapshots_give_no_arrays_and_a_broken_file_is_refused(tmp_path):
    saved(tmp_path, [])
    assert measure_snapshots(tmp_path / "snapshots.safetensors", GROUPS) == {}
    (tmp_path / "snapshots.safetensors").write_bytes(b"cut")
    for name in ("snapshots.safetensors", "absent.safetensors"):
        with pytest.raises(UserError, match="no readable snapshots"):
            measure_snapshots(tmp_path / name, GROUPS)
