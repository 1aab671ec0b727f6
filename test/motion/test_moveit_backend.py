"""The MoveIt backend against a stand-in with the published signatures of moveit_py 2.12, in MoveIt's own process.

The stand-in (`moveit_double`) accepts the argument names of the bindings and no others, and only arguments of the right
types. What MoveIt itself does with them can only be tried where it is installed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh import TriangleMesh
from morphit_ros.geometry.transforms import invert_transform, make_transform, matrix_from_quat_xyzw
from morphit_ros.motion.model import Body
from morphit_ros.motion.moveit import MoveItBackend, MoveItConfig
from morphit_ros.motion.refinement import Carried
from morphit_ros.robot.links import GeometryKind
from morphit_ros.robot.motion_backend import MotionBackendError, MotionStatus
from morphit_ros.robot.solids import Solid
from morphit_ros.robot.trajectory_timing import peak_accelerations

DOUBLE = Path(__file__).parent / "moveit_double"
LIMITS = {"robot_description_planning": {"cartesian_limits": {"max_trans_vel": 0.5}}}


class MoveIt:
    """The stand-in, which runs in other processes: what it is ordered to do, and what it tells."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def order(self, **orders: Any) -> None:
        (self.folder / "orders.json").write_text(json.dumps(orders), encoding="utf-8")

    @property
    def told(self) -> dict[str, Any]:
        return json.loads((self.folder / "told.json").read_text(encoding="utf-8"))

    def may_touch(self, first: str, second: str) -> bool:
        return [first, second] in self.told["allowed"]

    def might_touch(self, first: str, second: str) -> bool:
        """While it planned."""
        return [first, second] in self.told["allowed_while_planning"]


@pytest.fixture
def moveit(monkeypatch, tmp_path) -> MoveIt:
    """The stand-in in the place of moveit_py and of the message packages, in every Python that is started."""
    monkeypatch.setenv("PYTHONPATH", str(DOUBLE))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("MOVEIT_DOUBLE", str(tmp_path))
    return MoveIt(tmp_path)


@pytest.fixture
def make(moveit, panda) -> Iterator[Any]:
    """Makes backends, and ends them."""
    made = []

    def new(parameters: Any = None, robot: Any = panda, **options: Any) -> MoveItBackend:
        made.append(MoveItBackend(robot, LIMITS | (parameters or {}), **options))
        return made[-1]

    yield new
    for backend in made:
        backend.close()


@pytest.fixture
def backend(make):
    return make({"planning_pipelines": {"pipeline_names": ["ompl"]}})


def test_the_first_joint_state_is_waited_for(moveit, make):
    parameters = {"planning_scene_monitor_options": {"name": "monitor"}}
    make(parameters, config=MoveItConfig(state_wait=7.0))
    options = moveit.told["parameters"]["planning_scene_monitor_options"]
    assert options == {"name": "monitor", "wait_for_initial_state_timeout": 7.0}
    assert parameters == {"planning_scene_monitor_options": {"name": "monitor"}}


def test_time_and_namespace_are_those_of_the_node(moveit, make):
    make({"pipeline": "ompl"}, namespace="/left", use_sim_time=True)
    # Our collision detectors are told by the environment: MoveItPy says it to nobody.
    assert moveit.told["name_space"] == moveit.told["plugins_namespace"] == "/left"
    parameters = moveit.told["parameters"]
    assert parameters["use_sim_time"] is True
    assert parameters["pipeline"] == "ompl"
    # All that rclcpp would declare for its subscription of the clock.
    assert set(parameters["qos_overrides"]["/clock"]["subscription"]) == {
        "depth", "durability", "history", "reliability",
    }  # fmt: skip
    make()
    assert not {"use_sim_time", "qos_overrides"} & set(moveit.told["parameters"])
    assert moveit.told["name_space"] == ""
    assert moveit.told["plugins_namespace"] is None


def test_parameters_are_in_no_file(moveit, make):
    text = "<robot name=\"ä\">\n\t'\\' </robot>"
    make({"robot_description": text, "limits": {"small": 1e-05, "whole": 2.0, "count": 2}})
    told = moveit.told
    assert told["parameters"]["robot_description"] == text
    assert told["parameters"]["limits"] == {"small": 1e-05, "whole": 2.0, "count": 2}
    assert isinstance(told["parameters"]["limits"]["whole"], float)
    assert told["parameter_file"].startswith("/memfd:")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, b"bytes"])
def test_parameters_that_no_file_can_say(make, value):
    with pytest.raises(InvalidInputError, match="moveit_parameters"):
        make({"limit": value})


def test_a_start_that_fails_is_explained(moveit, make):
    moveit.order(start_fails=True)
    with pytest.raises(MotionBackendError, match=r"planning scene monitor.*joint_states within 10 s"):
        make()


def numbers(values: dict[str, float], names: str) -> list[float]:
    return [values[name] for name in names]


def test_a_free_motion(backend, moveit, panda, home, from_above):
    pose = from_above(0.5, 0.1, 0.3)
    result = backend.plan_to_pose({**home, "another_robots_joint": 1.0}, pose)
    told = moveit.told
    goal = told["goal"]
    assert told["pose_link"] == panda.tip_link
    assert goal["header"]["frame_id"] == panda.base_link
    quat = numbers(goal["pose"]["orientation"], "xyzw")
    np.testing.assert_allclose(matrix_from_quat_xyzw(quat), pose[:3, :3], atol=1e-12)
    assert numbers(goal["pose"]["position"], "xyz") == pytest.approx([0.5, 0.1, 0.3])
    assert told["start"]["panda_joint4"] == pytest.approx(home["panda_joint4"])
    request = told["requests"][0]
    assert (request["planning_pipeline"], request["planner_id"]) == ("ompl", "RRTConnectkConfigDefault")
    assert (request["planning_attempts"], request["planning_time"]) == (1, 2.0)
    assert (request["max_velocity_scaling_factor"], request["max_acceleration_scaling_factor"]) == (0.5, 0.5)
    assert result.status is MotionStatus.SUCCEEDED
    # Joints by name, one row a time, at rest at both ends.
    assert result.trajectory.joint_names == panda.arm_joints
    np.testing.assert_allclose(result.trajectory.times, [0.0, 0.5, 1.0])
    np.testing.assert_allclose(result.trajectory.positions[-1], np.arange(1, 8))
    assert not result.trajectory.velocities[[0, -1]].any()
    assert result.trajectory.velocities[1].any()


def test_a_motion_to_joint_positions(backend, moveit, panda, home):
    goal = dict(zip(panda.arm_joints, np.linspace(-1.0, -0.4, 7), strict=True))
    assert backend.plan_to_joints(home, goal).status is MotionStatus.SUCCEEDED
    # The fingers stay where they are.
    assert moveit.told["goal"] == pytest.approx(home | goal)
    assert moveit.told["start"] == pytest.approx(home)


def test_the_tip_carries_the_gripper(moveit, make, panda, home, from_above):
    mount = from_above(0.0, 0.0, 0.1)
    turned = type(panda)(**{**vars(panda), "T_tip_gripper": mount})
    backend = make(robot=turned)
    pose = from_above(0.5, 0.1, 0.3)
    backend.plan_to_pose(home, pose)
    expected = pose @ invert_transform(mount)
    position = numbers(moveit.told["goal"]["pose"]["position"], "xyz")
    np.testing.assert_allclose(position, expected[:3, 3], atol=1e-12)


@pytest.mark.parametrize(
    ("code", "status", "requests"),
    [
        ("PLANNING_FAILED", MotionStatus.NO_PATH, 3),
        ("START_STATE_IN_COLLISION", MotionStatus.START_IN_COLLISION, 1),
        ("NO_IK_SOLUTION", MotionStatus.UNREACHABLE, 1),
        ("GOAL_IN_COLLISION", MotionStatus.GOAL_IN_COLLISION, 3),
        ("FAILURE", MotionStatus.FAILED, 3),
    ],
)
def test_failed_requests(backend, moveit, home, from_above, code, status, requests):
    moveit.order(codes=[code] * 5)
    result = backend.plan_to_pose(home, from_above(0.5, 0.0, 0.3))
    assert result.status is status
    assert code in result.message
    assert result.planning_time == pytest.approx(0.25 * requests)
    assert len(moveit.told["requests"]) == requests


def test_one_failed_request_is_forgiven(backend, moveit, home, from_above):
    moveit.order(codes=["PLANNING_FAILED"])
    result = backend.plan_to_pose(home, from_above(0.5, 0.0, 0.3))
    assert result.status is MotionStatus.SUCCEEDED
    assert result.planning_time == pytest.approx(0.5)


def test_a_path_without_velocities_names_the_adapter(backend, moveit, home, from_above):
    moveit.order(points=[(0.0, 0.0), (1.0, 1.0)])
    result = backend.plan_to_pose(home, from_above(0.5, 0.0, 0.3))
    assert result.status is MotionStatus.FAILED
    assert "AddTimeOptimalParameterization" in result.message


def test_what_moveit_raises_while_it_plans_is_a_failed_plan(backend, moveit, home, from_above):
    moveit.order(**{"raise": "no such pipeline"})
    result = backend.plan_straight(home, from_above(0.5, 0.0, 0.3), 0.1)
    assert (result.status, result.message) == (MotionStatus.FAILED, "no such pipeline")


def test_contact_is_forbidden_again_where_the_srdf_has_no_pairs(moveit, make, home, table, box, from_above):
    moveit.order(no_pairs=True)
    backend = make()
    backend.set_world(table, [box])
    backend.plan_straight(home, from_above(0.5, 0.0, 0.1), 0.08, ["box"])
    assert moveit.might_touch("box", "panda_hand")
    assert not moveit.may_touch("box", "panda_hand")


def test_a_straight_line_scales_speed_and_allows_contact_meanwhile(backend, moveit, home, table, box, from_above):
    backend.set_world(table, [box])
    result = backend.plan_straight(home, from_above(0.5, 0.0, 0.1), 0.08, ["box"])
    assert result.status is MotionStatus.SUCCEEDED
    request = moveit.told["requests"][-1]
    assert (request["planning_pipeline"], request["planner_id"]) == ("pilz_industrial_motion_planner", "LIN")
    assert request["max_velocity_scaling_factor"] == pytest.approx(0.08 / 0.5)
    for link in ("panda_hand", "panda_leftfinger", "panda_rightfinger"):
        assert moveit.might_touch("box", link)
        assert moveit.might_touch(link, "box")
        assert not moveit.may_touch("box", link)
    assert not moveit.might_touch("box", "panda_link5")
    assert moveit.might_touch("panda_hand", "panda_leftfinger")
    assert moveit.may_touch("panda_hand", "panda_leftfinger")


def test_a_line_keeps_the_accelerations_that_it_was_timed_with(backend, moveit, home, from_above):
    # 0.2 rad/s after 0.5 s times the joint's number, of seven joints.
    moveit.order(as_pilz=True)
    line = backend.plan_straight(home, from_above(0.5, 0.0, 0.1), 0.2).trajectory
    assert line.duration == pytest.approx(2.613, abs=1e-6)
    np.testing.assert_allclose(line.positions[-1], 0.2 * (2.613 - 0.5) * np.arange(1, 8), atol=1e-9)
    np.testing.assert_allclose(line.velocities[[0, -1]], 0.0, atol=1e-12)
    np.testing.assert_allclose(np.abs(line.velocities).max(axis=0), 0.2 * np.arange(1, 8), rtol=0.05)
    # At the ends of a ramp the curve swings a little.
    np.testing.assert_array_less(peak_accelerations(line), 1.35 * 0.4 * np.arange(1, 8))


def test_a_blocked_line(backend, moveit, home, from_above):
    moveit.order(codes=["PLANNING_FAILED"] * 4)
    result = backend.plan_straight(home, from_above(0.5, 0.0, 0.1), 0.08)
    assert result.status is MotionStatus.PATH_BLOCKED
    # Pilz says the same of a line that only the joints' accelerations forbid: slower ones were tried.
    told = [(r["max_velocity_scaling_factor"], r["max_acceleration_scaling_factor"]) for r in moveit.told["requests"]]
    slower = np.array([1.0, 0.7, 0.5, 0.35])
    np.testing.assert_allclose(told, np.column_stack([0.16 * slower, 0.5 * slower**2]))


def test_a_line_that_the_joints_cannot_follow_is_slower(backend, moveit, home, from_above):
    moveit.order(codes=["PLANNING_FAILED"])
    result = backend.plan_straight(home, from_above(0.5, 0.0, 0.1), 0.08)
    assert result.status is MotionStatus.SUCCEEDED
    assert [r["max_velocity_scaling_factor"] for r in moveit.told["requests"]] == pytest.approx([0.16, 0.112])
    # The next line begins anew.
    backend.plan_straight(home, from_above(0.5, 0.0, 0.1), 0.08)
    assert moveit.told["requests"][-1]["max_acceleration_scaling_factor"] == pytest.approx(0.5)


def test_the_world_is_replaced(backend, moveit, table, box, panda):
    backend.set_world(table, [box])
    world = moveit.told["world"]
    assert set(world) == {"table", "box"}
    slab = world["table"]
    assert slab["primitives"][0]["dimensions"] == pytest.approx([0.7, 1.2, table.thickness])
    assert slab["primitive_poses"][0]["position"]["z"] == pytest.approx(-table.thickness / 2.0)
    spheres = world["box"]
    assert spheres["header"]["frame_id"] == panda.base_link
    assert {(shape["type"], *shape["dimensions"]) for shape in spheres["primitives"]} == {(2, 0.01)}
    places = [numbers(pose["position"], "xyz") for pose in spheres["primitive_poses"]]
    np.testing.assert_allclose(places, box.centers)
    backend.set_world(None, [])
    assert moveit.told["world"] == {}


def test_solids_become_shapes_that_moveit_knows(backend, moveit, table, box):
    """Several of one name are one object, beside one of ours of the same name."""
    pose = make_transform(translation=[0.5, 0.25, 0.125])
    corners = np.array([[0.0, 0.0, 0.0], [0.25, 0.0, 0.0], [0.0, 0.25, 0.0], [0.0, 0.0, 0.25]])
    wedge = TriangleMesh(corners, np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]))
    kinds = GeometryKind
    solids = [
        Solid("box", kinds.BOX, pose, np.array([0.1, 0.2, 0.3])),
        Solid("box", kinds.SPHERE, pose, np.array([0.05])),
        Solid("post", kinds.CYLINDER, pose, np.array([0.03, 0.6])),
        Solid("rail", kinds.CAPSULE, pose, np.array([0.02, 0.5])),
        Solid("wedge", kinds.MESH, pose, np.zeros(1), wedge),
    ]
    backend.set_world(table, [box], solids)
    world = moveit.told["world"]
    assert set(world) == {"table", "box", *(f"world object {name}" for name in ("box", "post", "rail", "wedge"))}

    def shapes(name):
        told = world[f"world object {name}"]
        places = [numbers(each["position"], "xyz") for each in told["primitive_poses"]]
        return [
            (shape["type"], *shape["dimensions"], *place)
            for shape, place in zip(told["primitives"], places, strict=True)
        ]

    here = (0.5, 0.25, 0.125)
    assert shapes("box") == [(1, 0.1, 0.2, 0.3, *here), (2, 0.05, *here)]
    # Of a cylinder MoveIt is told the height first.
    assert shapes("post") == [(3, 0.6, 0.03, *here)]
    assert shapes("rail") == [(3, 0.5, 0.02, *here), (2, 0.02, 0.5, 0.25, -0.125), (2, 0.02, 0.5, 0.25, 0.375)]
    told = world["world object wedge"]
    assert [face["vertex_indices"] for face in told["meshes"][0]["triangles"]] == wedge.faces.tolist()
    assert [numbers(corner, "xyz") for corner in told["meshes"][0]["vertices"]] == corners.tolist()
    assert numbers(told["mesh_poses"][0]["position"], "xyz") == list(here)
    backend.set_world(None, [])
    assert moveit.told["world"] == {}


def plates(link: str, height: float) -> Carried:
    body = Body(link, np.array([[0.0, 0.0, height], [0.05, 0.0, height]]), np.array([0.03, 0.03]))
    return Carried("cover", body, frozenset(["panda_link6"]))


def test_what_links_carry_for_good_is_part_of_the_robot_at_each_request(
    make, moveit, table, box, home, panda, from_above
):
    worn: list[Carried] = []
    backend = make(worn=lambda: worn)
    goal = dict(zip(panda.arm_joints, np.linspace(-1.0, -0.4, 7), strict=True))
    backend.set_world(table, [box])
    backend.plan_to_joints(home, goal)
    assert moveit.told["attached_while_planning"] == []

    def seen() -> dict[str, Any]:
        backend.plan_to_joints(home, goal)
        assert moveit.told["attached_while_planning"] == sorted(moveit.told["attached"])
        return moveit.told["attached"]["cover"]

    for link, height in (("panda_link5", 0.1), ("panda_link5", 0.2), ("panda_link4", 0.2)):
        worn[:] = [plates(link, height)]
        cover = seen()
        assert (cover["link_name"], cover["touch_links"]) == (link, sorted([link, "panda_link6"]))
        assert cover["object"]["header"]["frame_id"] == link
        assert [shape["dimensions"] for shape in cover["object"]["primitives"]] == [[0.03], [0.03]]
        places = [numbers(pose["position"], "xyz") for pose in cover["object"]["primitive_poses"]]
        np.testing.assert_allclose(places, [[0.0, 0.0, height], [0.05, 0.0, height]])
        assert set(moveit.told["world"]) == {"table", "box"}
    # It stays with another world, beside what the hand holds, and in a process that follows one that died.
    backend.set_world(table, [box])
    backend.attach("box", from_above(0.5, 0.0, 0.08))
    moveit.order(plan="SIGSEGV")
    with pytest.raises(MotionBackendError):
        backend.plan_to_joints(home, goal)
    moveit.order()
    assert seen()["link_name"] == "panda_link4"
    assert set(moveit.told["attached"]) == {"box", "cover"}
    worn.clear()
    backend.plan_straight(home, from_above(0.5, 0.0, 0.3), 0.1)
    assert set(moveit.told["attached"]) == {"box"}
    assert set(moveit.told["world"]) == {"table"}


def test_attaching_in_the_frame_of_the_tip(backend, moveit, table, box, panda, home, from_above):
    backend.set_world(table, [box])
    backend.attach("box", from_above(0.5, 0.0, 0.08))
    assert set(moveit.told["world"]) == {"table"}
    held = moveit.told["attached"]["box"]
    assert held["link_name"] == panda.tip_link
    assert held["touch_links"] == list(panda.touch_links)
    assert held["object"]["header"]["frame_id"] == panda.tip_link
    heights = [pose["position"]["z"] for pose in held["object"]["primitive_poses"]]
    np.testing.assert_allclose(heights, 0.08 - box.centers[:, 2], atol=1e-12)
    backend.plan_straight(home, from_above(0.5, 0.0, 0.3), 0.1)
    assert moveit.might_touch("box", "table")
    backend.detach("box")
    assert moveit.told["attached"] == {}
    assert set(moveit.told["world"]) == {"table"}
    with pytest.raises(InvalidInputError, match="attached"):
        backend.detach("box")
    with pytest.raises(InvalidInputError, match="object_name"):
        backend.attach("box", from_above(0.5, 0.0, 0.08))


def test_a_new_world_detaches(backend, moveit, table, box, from_above):
    backend.set_world(table, [box])
    backend.attach("box", from_above(0.5, 0.0, 0.08))
    backend.set_world(table, [box])
    assert moveit.told["attached"] == {}
    assert set(moveit.told["world"]) == {"table", "box"}


def test_what_moveit_refuses_is_an_error_and_no_end(backend, moveit, table, box):
    moveit.order(refuse="box")
    with pytest.raises(MotionBackendError, match="did not accept obstacle 'box'"):
        backend.set_world(table, [box])
    before = moveit.told["pid"]
    moveit.order()
    backend.set_world(None, [box])
    assert set(moveit.told["world"]) == {"box"}
    assert moveit.told["pid"] == before


@pytest.mark.parametrize(
    "limits", [{}, {"cartesian_limits": {}}, {"cartesian_limits": {"max_trans_vel": 0.0}}, {"cartesian_limits": "1.0"}]
)
def test_without_the_speed_that_lines_are_scaled_from(make, limits):
    with pytest.raises(InvalidInputError, match=r"cartesian_limits\.max_trans_vel"):
        make({"robot_description_planning": limits})


def test_mistakes(backend, home, from_above):
    with pytest.raises(InvalidInputError, match="panda_joint3"):
        backend.plan_to_pose({k: v for k, v in home.items() if k != "panda_joint3"}, from_above(0.5, 0.0, 0.3))
    with pytest.raises(InvalidInputError, match="speed"):
        backend.plan_straight(home, from_above(0.5, 0.0, 0.3), -1.0)
    with pytest.raises(InvalidInputError, match="finite"):
        backend.plan_to_pose({**home, "panda_joint3": float("nan")}, from_above(0.5, 0.0, 0.3))
    assert backend.plan_to_pose(home, from_above(0.5, 0.0, 0.3)).status is MotionStatus.SUCCEEDED


def test_shutdown(backend, moveit):
    backend.close()
    assert moveit.told["is_shut_down"]
    backend.close()
