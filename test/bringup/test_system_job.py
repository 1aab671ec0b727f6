"""The system job: one graph of the other jobs' nodes, with what they share given once."""

from __future__ import annotations

from pathlib import Path

import pytest

from morphit_ros.bringup import NodeDescription, WhenEnded, find_job, parse_assignments
from morphit_ros.bringup.machines import PARTS
from morphit_ros.errors import InvalidInputError, ResourceNotFoundError

REAL = ("sim:=false", "base_pose:=0 0 0 0 0 0 1")
ADDED = {"superovoid_distance", "motion_planning", "task_execution"}


@pytest.fixture(autouse=True)
def no_ros_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMENT_PREFIX_PATH", "")


def nodes(*words: str, job: str = "system") -> dict[str, NodeDescription]:
    return {node.node_name: node for node in find_job(job).nodes(parse_assignments(words))}


@pytest.mark.parametrize("words", [(), REAL, ("robot:=ur3e_hande", "seed:=3", "pick:=true", "namespace:=left")])
def test_it_is_the_grasp_job_and_more(words: tuple[str, ...]) -> None:
    found, grasp = nodes(*words), nodes(*words, job="grasp")
    assert set(found) - set(grasp) == ADDED
    for name in set(grasp) - {"web_viewer"}:
        assert found[name] == grasp[name]
    # One robot, one clock, one namespace for all.
    assert {node.namespace for node in found.values()} == {grasp["grasp_planning"].namespace}
    for name in ADDED:
        assert found[name].parameters["use_sim_time"] is grasp["grasp_planning"].parameters["use_sim_time"]


def test_superovoids_are_of_the_same_robot() -> None:
    simulated = nodes("robot:=ur3e_hande")["superovoid_distance"]
    assert simulated.parameters["robot"] == simulated.parameters["model"] == "ur3e_hande"
    assert simulated.when_ended is WhenEnded.RESTART
    # A driver's description, calibrated, is for all nodes.
    assert "robot" not in nodes(*REAL)["superovoid_distance"].parameters
    assert nodes("superovoids:=panda_outer")["superovoid_distance"].parameters["model"] == "panda_outer"


def test_motions_are_planned_where_the_robot_stands() -> None:
    place = find_job("grasp").nodes({"robot": "iiwa_umi"})
    base = next(node.parameters["base_xyz"] for node in place if node.node_name == "grasp_execution")
    found = nodes("robot:=iiwa_umi")["motion_planning"]
    assert found.parameters["base_xyz"] == base and found.parameters["robot"] == "iiwa_umi"
    assert found.parameters["description"] == "file"
    real = nodes("sim:=false", "base_pose:=0.1 0 0 0 0 0 1")["motion_planning"].parameters
    assert (real["description"], real["base_xyz"]) == ("topic", [0.1, 0.0, 0.0])


def test_one_distance_function_plans_and_executes() -> None:
    assert nodes()["grasp_planning"].parameters["clearance"] == "points"
    found = nodes("clearance:=superovoids", "min_clearance:=-0.01")
    for name in ("grasp_planning", "grasp_execution"):
        assert found[name].parameters["clearance"] == "superovoids"
        assert found[name].parameters["min_clearance"] == -0.01


def test_one_clearance_for_grasps_and_paths() -> None:
    assert "clearance" not in nodes("clearance:=superovoids")["motion_planning"].parameters
    found = nodes("clearance:=world", "superovoids:=panda_fine")
    assert found["grasp_execution"].parameters["clearance"] == "world"
    planning = found["motion_planning"].parameters
    assert (planning["clearance"], planning["model"]) == ("superovoids", "panda_fine")


def test_neural_object_and_cover_where_asked_for() -> None:
    found = nodes("neural:=true", "density:=1200", "cover:=3x3")
    assert set(found) - set(nodes()) == {"neural_object", "cover_sim", "cover_control"}
    assert found["neural_object"].parameters["density"] == 1200.0
    assert found["neural_object"].parameters["use_sim_time"] is True
    # It is controlled in wall time, whatever the arm's simulation does.
    for name in ("cover_sim", "cover_control"):
        assert found[name].parameters["use_sim_time"] is False
        assert found[name].parameters["case"] == "3x3"
    assert "cover_sim" not in nodes("cover:=3x3", *REAL)
    with pytest.raises(ResourceNotFoundError):
        nodes("cover:=nothing_like_it")
    with pytest.raises(InvalidInputError, match="density"):
        nodes("neural:=true", "density:=-5")


def test_the_view_knows_whom_to_wait_for_and_may_only_look() -> None:
    found = nodes("neural:=true", "pick:=true")
    view = found["web_viewer"].parameters
    assert set(view["job_nodes"]) == set(found) - {"web_viewer", "pick_client"}
    assert view["controls"] is True
    assert nodes("viewer_controls:=false")["web_viewer"].parameters["controls"] is False


def test_rviz_shows_all_of_it() -> None:
    assert nodes("rviz:=true")["rviz2"].arguments[1].endswith("system.rviz")


def test_the_parts_of_several_machines_are_the_job() -> None:
    words = ("neural:=true", "cover:=3x3")
    split = [set(nodes(*words, f"only:={part}", "job:=cell")) for part in PARTS]
    assert set().union(*split) == set(nodes(*words))
    assert sum(map(len, split)) == len(nodes(*words))


def test_parameter_files_reach_the_added_nodes(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "superovoid_distance: {ros__parameters: {state_timeout: 2.0}}\n"
        "neural_object: {ros__parameters: {friction: 0.5}}\n",
        encoding="utf-8",
    )
    found = nodes(f"params_file:={path}", "neural:=true")
    assert found["superovoid_distance"].parameters["state_timeout"] == 2.0
    assert found["neural_object"].parameters["friction"] == 0.5
    # Without that part its section is no mistake.
    assert "neural_object" not in nodes(f"params_file:={path}")
    path.write_text("superovoid_distanse: {ros__parameters: {alpha: 0.3}}\n", encoding="utf-8")
    with pytest.raises(InvalidInputError, match="superovoid_distanse"):
        nodes(f"params_file:={path}")


def test_a_cover_that_a_link_wears_is_told_to_the_robots_spheres() -> None:
    pose = "0 0.06 -0.15 0 0 0 1"
    found = nodes("cover:=3x3", "cover_link:=panda_link5", f"cover_pose:={pose}")
    assert found["robot_spheres"].parameters["cover.link"] == "panda_link5"
    assert found["robot_spheres"].parameters["cover.pose"] == [0.0, 0.06, -0.15, 0.0, 0.0, 0.0, 1.0]
    assert {found[name].parameters["cover_frame"] for name in ("cover_control", "cover_sim")} == {"cover"}
    beside = nodes("cover:=3x3")
    assert "cover.link" not in beside["robot_spheres"].parameters
    assert "cover_frame" not in beside["cover_control"].parameters
    with pytest.raises(InvalidInputError, match="cover_link"):
        nodes("cover:=3x3", "cover_link:=panda_link15")
    with pytest.raises(InvalidInputError, match="without cover"):
        nodes("cover_link:=panda_link5")
    with pytest.raises(InvalidInputError, match="cover_pose"):
        nodes("cover:=3x3", "cover_link:=panda_link5", "cover_pose:=1 2 3")
