"""What drivers say of a robot, in messages of their fields, and the time by which scaled arms fall behind."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from morphit_ros.execution.driver_state import (
    HeldUp,
    franka_problem,
    program_problem,
    ur_mode_problem,
    ur_safety_problem,
)


class Errors:
    """Like franka_msgs/Errors: a flag an error."""

    names = ("joint_position_limits_violation", "joint_reflex", "cartesian_reflex", "power_limit_violation")

    def __init__(self, *found: str) -> None:
        assert set(found) <= set(self.names)
        for name in self.names:
            setattr(self, name, name in found)

    @classmethod
    def get_fields_and_field_types(cls) -> dict[str, str]:
        return dict.fromkeys(cls.names, "boolean")


def franka(mode: int, current: Errors | None = None, last: Errors | None = None) -> SimpleNamespace:
    return SimpleNamespace(robot_mode=mode, current_errors=current or Errors(), last_motion_errors=last or Errors())


# Constants of ur_dashboard_msgs 3.x (Jazzy), written out: the package is no wheel.
@pytest.mark.parametrize(
    ("mode", "words"),
    [(1, ""), (2, ""), (3, "a protective stop"), (5, "a safeguard stop"), (6, "an emergency stop of the system"),
     (7, "an emergency stop of the robot"), (8, "a safety violation"), (9, "a safety fault"),
     (12, "a safeguard stop in automatic mode"), (99, "safety mode 99")],
)  # fmt: skip
def test_a_ur_moves_in_normal_and_reduced_mode_only(mode: int, words: str) -> None:
    assert ur_safety_problem(SimpleNamespace(mode=mode)) == (words and f"the robot is in {words}")


def test_every_other_safety_mode_is_a_reason() -> None:
    assert all(ur_safety_problem(SimpleNamespace(mode=mode)) for mode in range(256) if mode not in (1, 2))


def test_a_ur_moves_while_it_runs_its_program() -> None:
    assert [mode for mode in range(-128, 128) if not ur_mode_problem(SimpleNamespace(mode=mode))] == [7]
    assert "power off" in ur_mode_problem(SimpleNamespace(mode=3))
    assert program_problem(SimpleNamespace(data=True)) == ""
    assert "program is not running" in program_problem(SimpleNamespace(data=False))


def test_a_franka_names_its_errors() -> None:
    assert franka_problem(franka(1)) == franka_problem(franka(2)) == ""
    # What ended an earlier motion is over.
    assert franka_problem(franka(2, last=Errors("joint_reflex"))) == ""
    reflex = franka_problem(franka(4, Errors("cartesian_reflex"), Errors("joint_reflex")))
    assert reflex == "the robot is in a reflex: cartesian_reflex"
    assert franka_problem(franka(4, last=Errors("joint_reflex", "power_limit_violation"))) == (
        "the robot is in a reflex: joint_reflex, power_limit_violation"
    )
    assert franka_problem(franka(5)) == "the robot is stopped by its user"
    assert franka_problem(franka(2, Errors("joint_reflex"))) == "the robot has an error: joint_reflex"
    assert all(franka_problem(franka(mode)) for mode in (0, 3, 4, 5, 6, 17))


@pytest.mark.parametrize("seed", range(5))
def test_what_falls_behind_is_the_time_that_was_not_let_pass(seed: int) -> None:
    rng = np.random.default_rng(seed)
    held_up, now, progress = HeldUp(), 100.0, 0.0
    held_up.scale(100.0, now)
    for scale in rng.uniform(0.0, 100.0, 20):
        held_up.scale(scale, now)
        for step in rng.uniform(0.0, 0.1, 10):
            now += step
            progress += step * scale / 100.0
            assert now - 100.0 - held_up.until(now) == pytest.approx(progress)


def test_a_scale_that_is_none_and_a_clock_that_goes_back_change_nothing() -> None:
    held_up = HeldUp()
    held_up.scale(50.0, 10.0)
    held_up.scale(float("nan"), 11.0)
    assert held_up.until(12.0) == pytest.approx(1.0)
    assert held_up.until(5.0) == pytest.approx(1.0)
    assert held_up.until(6.0) == pytest.approx(1.5)
    held_up.scale(400.0, 6.0)
    assert held_up.until(7.0) == pytest.approx(1.5)
