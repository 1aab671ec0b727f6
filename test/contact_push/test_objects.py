"""Objects made of spheres, and how they rest."""

import numpy as np

from morphit_ros.contact_planning.planner import ContactLaw
from morphit_ros.contact_push.objects import pushed_box, resting_height


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
