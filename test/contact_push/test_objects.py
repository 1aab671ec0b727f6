"""Objects made of spheres, and how they rest."""

import numpy as np
import pytest

from morphit_ros.contact_planning.planner import ContactLaw
from morphit_ros.contact_push.objects import pushed_box, pushed_object, resting_height, surface_of
from morphit_ros.contact_push.push_config import OBJECTS, ContactPushConfig


def test_a_box_rests_where_its_weight_is_carried():
    law = ContactLaw(stiffness=2000.0, smoothing=0.003)
    thing = pushed_box((0.1, 0.08, 0.06), 0.5)
    gap = resting_height(thing, law) - 0.03
    force = law.smoothing * law.stiffness * np.log1p(np.exp(-gap / law.smoothing))
    np.testing.assert_allclose(force, 0.5 * 9.81, rtol=1e-12)
    # It tips over its edges, however thick the spheres of its rear face are.
    feet = thing.centers[thing.standing]
    assert (np.ptp(feet, axis=0)[:2] > [0.09, 0.07]).all()
    np.testing.assert_allclose(feet[:, 2] - thing.radii[thing.standing], -0.03)
    # The spheres touch all faces from inside.
    np.testing.assert_allclose((thing.centers + thing.radii[:, None]).max(axis=0), [0.05, 0.04, 0.03])


@pytest.mark.parametrize("kind", OBJECTS)
def test_what_is_drawn_of_an_object_stands_on_the_table_and_holds_its_spheres(kind):
    config = ContactPushConfig(object=kind, size=(0.2, 0.12, 0.08))
    thing = pushed_object(config)
    drawn, centers = surface_of(config, segments=64), thing.centers + np.array([0.0, 0.0, thing.height])
    low, high = drawn.vertices.min(axis=0), drawn.vertices.max(axis=0)
    assert low[2] == pytest.approx(0.0, abs=1e-12)
    # The spheres of a bottle's cap are as wide as it is, and end above it.
    slack = np.array([1e-4, 1e-4, 0.01])
    assert ((centers - thing.radii[:, None] > low - slack) & (centers + thing.radii[:, None] < high + slack)).all()
    sides = {"box": (0.2, 0.12, 0.08), "ball": (0.2,) * 3, "forearm_ball": (0.2,) * 3}
    np.testing.assert_allclose(high - low, sides.get(kind, (0.064, 0.064, 0.215)), atol=1e-12)
