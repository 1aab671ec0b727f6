"""When fingers count as being at rest: by the times of the measurements, not by how often they are looked at."""

from __future__ import annotations

from morphit_ros.execution.sequence_config import SequenceConfig
from morphit_ros.execution.supervision import ApertureWatch

CONFIG = SequenceConfig(rest_time=0.2, rest_aperture=5e-4)


def test_an_unchanged_aperture_is_rest_after_the_rest_time():
    watch = ApertureWatch(CONFIG)
    answers = [watch.at_rest(0.05 * step, 0.03) for step in range(8)]
    assert answers == [False] * 4 + [True] * 4


def test_moving_fingers_do_not_rest():
    watch = ApertureWatch(CONFIG)
    assert not any(watch.at_rest(0.05 * step, 0.05 - 0.001 * step) for step in range(20))


def test_one_measurement_looked_at_for_long_is_no_rest():
    # Joint states that fail to arrive while the fingers travel on.
    watch = ApertureWatch(CONFIG)
    assert not any(watch.at_rest(1.0, 0.04) for _ in range(100))
    assert not watch.at_rest(1.5, 0.02)
    assert watch.at_rest(1.71, 0.02)
