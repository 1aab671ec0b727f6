"""Covers for transfers: fitted by a process of their own, which nobody waits for and nobody leaves behind."""

import os
import time

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")

from rclpy.node import Node

from morphit_ros.robot.kinematics import KinematicModel
from morphit_ros.ros.execution.transfer_covers import TransferCovers

URDF = """<robot name="two_links">
<link name="base"><collision><geometry><box size="0.1 0.1 0.1"/></geometry></collision></link>
<link name="arm"><collision><origin xyz="0.3 0 0"/><geometry>{shape}</geometry></collision></link>
<joint name="turn" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>
 <limit lower="-3" upper="3" velocity="1" effort="1"/></joint>
</robot>"""


def robot(shape='<box size="0.4 0.05 0.05"/>'):
    return KinematicModel(URDF.format(shape=shape))


@pytest.fixture
def covers(ros_environment):
    node = Node("covers")
    made = TransferCovers(node, ("turn",), ("arm", "a link of another robot"))
    yield made
    made.close()
    node.destroy_node()


def wait_until(condition, timeout=60.0):
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


def test_they_come_after_a_while_and_belong_to_the_newest_robot(covers):
    covers.follow(None)
    assert covers.arm is None
    first, second = robot(), robot('<cylinder radius="0.03" length="0.2"/>')
    covers.follow(first)
    # Nobody waits.
    assert covers.arm is None
    wait_until(lambda: covers.arm is not None)
    assert covers.arm.kinematics is first and covers.arm.links == ("base", "arm")
    assert covers.arm.levels[0] == covers.arm.levels[1]
    # Of the hand, which has a box, the spheres inside it too.
    assert set(covers.arm.hand) == {"arm"}
    body = covers.arm.hand["arm"]
    assert (np.abs(body.centers - [0.3, 0.0, 0.0]) + body.radii[:, None] < np.array([0.2, 0.025, 0.025]) + 0.003).all()
    arm = covers.arm
    covers.follow(first)
    assert covers.arm is arm
    covers.follow(second)
    assert covers.arm is None
    wait_until(lambda: covers.arm is not None)
    assert covers.arm.kinematics is second


def test_the_node_itself_finds_nothing_out(covers, monkeypatch):
    """Fits, tests of pairs and surfaces would keep its other threads, and an arm's heartbeats, waiting."""

    def refuse(*_, **__):
        raise AssertionError("not in this process")

    for name in ("covering_spheres", "self_collision_matrix", "closed_surfaces"):
        monkeypatch.setattr(f"morphit_ros.motion.refinement.{name}", refuse)
    covers.follow(robot())
    wait_until(lambda: covers.arm is not None)
    arm = covers.arm
    # Finer spheres and surfaces are there as well.
    assert set(arm.model({"arm": arm.exact}).insides) == {arm.links.index("arm")}
    assert len(arm.model({"arm": arm.finest}).arrays.radii) >= len(arm.model({}).arrays.radii)


def test_the_process_ends_with_whoever_started_it(covers):
    covers.follow(robot())
    process = covers._process
    # It takes only what nobody else wants.
    wait_until(lambda: os.getpriority(os.PRIO_PROCESS, process.pid) == 19)
    # Ctrl-C is for the foreground, whose processes say how they end.
    assert os.getsid(process.pid) != os.getsid(0)
    # As the death of the starter does: nothing holds the other end of its input any more.
    process.stdin.close()
    wait_until(lambda: process.poll() is not None, timeout=20.0)
    covers.follow(robot())
    process = covers._process
    covers.close()
    wait_until(lambda: process.poll() is not None, timeout=5.0)
    assert covers.arm is None


def test_a_robot_that_cannot_be_fitted_has_none_and_it_is_said(covers, monkeypatch, tmp_path):
    (tmp_path / "arm.stl").write_text("no mesh")
    said = []
    monkeypatch.setattr(covers._node.get_logger().__class__, "warning", lambda self, text, **_: said.append(text))
    covers.follow(robot(f'<mesh filename="file://{tmp_path}/arm.stl"/>'))
    wait_until(lambda: said)
    assert covers.arm is None
    assert "published spheres" in said[0] and "arm.stl" in said[0]
    # Another robot is another matter.
    covers.follow(robot())
    wait_until(lambda: covers.arm is not None)
