"""A workcell's file: values of a job's arguments, which what is typed overrides."""

from __future__ import annotations

from pathlib import Path

import pytest

from morphit_ros.bringup import NodeDescription, find_job
from morphit_ros.errors import InvalidInputError, ResourceNotFoundError


@pytest.fixture(autouse=True)
def no_ros_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMENT_PREFIX_PATH", "")


def nodes(**given: str) -> dict[str, NodeDescription]:
    return {node.node_name: node for node in find_job("system").nodes(given)}


@pytest.mark.parametrize("name", ["panda", "ur3e_hande"])
def test_what_comes_with_the_package_is_the_job_as_it_is(name: str) -> None:
    assert nodes(workcell=name) == nodes(robot=name)


def test_values_of_a_file_count_and_what_is_typed_counts_more(tmp_path: Path) -> None:
    file = tmp_path / "cell.yaml"
    file.write_text("arm: {robot: ur3e_hande, lift_height: 0.1}\nparts:\n  viewer: false\n  motions: false\nseed: 5\n")
    found = nodes(workcell=str(file))
    assert found["grasp_execution"].parameters["robot"] == "ur3e_hande"
    assert found["grasp_execution"].parameters["lift_height"] == 0.1
    assert found["workcell_sim"].parameters["seed"] == 5
    assert not {"web_viewer", "motion_planning"} & set(found)
    typed = nodes(workcell=str(file), robot="panda", motions="true")
    assert typed["grasp_execution"].parameters["robot"] == "panda" and "motion_planning" in typed


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("robott: panda", "robott"),
        ("a: {robot: panda}\nb: {robot: ur3e_hande}", "twice"),
        ("robot: [panda]", "robot"),
        ("workcell: panda", "workcell"),
        ("- panda", "names of arguments"),
        ("lift_height: 9", "lift_height"),
    ],
)
def test_a_bad_file_is_refused_by_name(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "cell.yaml"
    file.write_text(text)
    with pytest.raises(InvalidInputError, match=words):
        nodes(workcell=str(file))


def test_a_file_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(ResourceNotFoundError, match="panda"):
        nodes(workcell="nowhere")


def test_each_part_has_a_switch() -> None:
    parts = {"distances": "superovoid_distance", "motions": "motion_planning", "tasks": "task_execution"}
    for switch, node in parts.items():
        assert node in nodes() and node not in nodes(**{switch: "false"})
    assert "person_monitor" in nodes(people="true", person="1 0 0") and "person_monitor" not in nodes()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"people": "true"}, "Give a course"),
        ({"person": "1 0"}, "person"),
        ({"person": "1 0 0", "sim": "false", "base_pose": "0 0 0 0 0 0 1"}, "sim:=false"),
    ],
)
def test_arguments_that_contradict_each_other_are_refused(given: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        nodes(**given)


def test_a_real_cell_is_watched_where_somebody_tracks_people() -> None:
    found = nodes(people="true", sim="false", base_pose="0 0 0 0 0 0 1")["person_monitor"]
    assert "robot" not in found.parameters
