"""Compiles, or loads, the kernels of the subpackage, so that the first request does not wait for it."""

from __future__ import annotations

import numpy as np

from morphit_ros.neural.fields.analytic import BoxField
from morphit_ros.neural.objects.known_object import know_object
from morphit_ros.neural.objects.push_identification import PushMotion
from morphit_ros.neural.objects.push_scene import PredictionConfig, PushScene, carrying_table
from morphit_ros.neural.objects.pusher import Pusher


def warm_up() -> None:
    """Once through everything that `neural_object` answers with."""
    known = know_object(BoxField((0.10, 0.06, 0.04)), 500.0, eyes=np.array([[1.0, 0.0, 0.5]]))
    pusher = Pusher(0.01, np.array([0.0, 0.1]), np.array([[-0.07, 0.0, 0.0], [-0.06, 0.0, 0.0]]), 0.0, np.zeros((2, 3)))
    scene = PushScene(known, carrying_table(known, np.eye(4)), pusher, PredictionConfig(contact_points=100))
    times = np.array([0.0, 0.01, 0.02])
    motion = PushMotion(scene, known.body(100), 0.0)
    start = np.zeros((1, 13))
    start[0, 6] = 1.0
    motion.predict(("friction", "center_of_mass_x"), np.array([0.3, 0.0]), start, times)
