"""The object that `morphit neural identify` and `push` make of a saved field."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from morphit_ros.commands.neural_field import load_body
from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.neural.fields.analytic import SphereField
from morphit_ros.neural.learning.field_file import save_field

# Its density falls from 1 to 0 over 2 cm.
SOFT = SphereField(0.05, edge=0.02)


@pytest.mark.parametrize("threshold", [None, 0.1, 0.9])
def test_a_saved_field_is_cut_at_its_own_threshold(threshold: float | None, tmp_path: Path) -> None:
    save_field(SOFT, tmp_path / "ball.npz", threshold=threshold)
    solid, body = load_body(str(tmp_path / "ball.npz"), 0.2)
    radii = np.linspace(0.04, 0.06, 2001)
    densities = SOFT.density(radii[:, None] * [1.0, 0.0, 0.0])
    radius = float(np.interp(-(threshold or 0.5), -densities, radii))
    reach = np.linalg.norm(body.points, axis=1).max()
    # Of an edge that soft, two levels are halfway but for a little.
    assert reach == pytest.approx(radius, abs=2e-4 if threshold else 1e-3)
    assert solid.volume == pytest.approx(4.0 / 3.0 * np.pi * reach**3, rel=0.01)
    assert body.mass == 0.2
    np.testing.assert_allclose(np.diag(body.inertia), 0.4 * 0.2 * reach**2, rtol=0.01)


def test_files_that_hold_no_object(tmp_path: Path) -> None:
    with pytest.raises(ResourceNotFoundError):
        load_body(str(tmp_path / "none.npz"), 0.2)
    save_field(SOFT, tmp_path / "empty.npz", threshold=2.0)
    with pytest.raises(InvalidInputError, match="threshold"):
        load_body(str(tmp_path / "empty.npz"), 0.2)
