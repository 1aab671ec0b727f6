"""`morphit show`: the table that is set, and what is made of what truly happened."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from morphit_ros.commands.show import judged, story

if importlib.util.find_spec("mujoco") is None:
    pytest.skip("needs the simulation: mujoco", allow_module_level=True)

REPORT = {"success": True, "duration": 200.0, "waited": 10.0, "message": ""}


def ended(name: str, x: float, y: float, fallen: bool = False) -> dict[str, Any]:
    """Where an object of 12 × 8 × 8 cm ended."""
    place = [x, y, -0.7 if fallen else 0.04]
    return {"name": name, "from": [0.5, 0.0, 0.04], "to": place, "size": [0.12, 0.08, 0.08], "fallen": fallen}


def truth(**changes: Any) -> dict[str, Any]:
    return {
        "objects": [
            ended("mug", 0.3, -0.4),
            ended("crate", 0.5, 0.46),
        ],
        "links_on_table": {}, "links_on_person": {}, "least_distance": 0.4, "least_distance_moving": 0.6, **changes,
    }  # fmt: skip


def test_a_story_is_the_jobs_arguments_and_the_same_for_a_seed() -> None:
    from morphit_ros.bringup import find_job

    for seed in (0, 5):
        given = story(seed)
        assert given == story(seed)
        nodes = {node.node_name: node for node in find_job("grasp").nodes(given)}
        assert {"task_execution", "person_monitor", "pick_client"} <= set(nodes)
        assert nodes["scene_perception"].parameters["cameras"] == 3
        assert len(given["others"].split()) == 6
    assert story(0)["others"] != story(5)["others"]


def test_all_is_well() -> None:
    assert all(good for _, good in judged(REPORT, truth()))
    # Less than a quarter of it sticks out along either side.
    assert all(good for _, good in judged(REPORT, truth(objects=[ended("mug", 0.545, -0.295)])))


@pytest.mark.parametrize(
    ("report", "changes", "words"),
    [
        ({"success": False}, {}, "belongs"),
        ({}, {"objects": [ended("mug", 0.5, 0.0)]}, "belongs, but: mug"),
        # Its middle is in the region, more than a quarter of it is not.
        ({}, {"objects": [ended("mug", 0.56, -0.4)]}, "belongs, but: mug"),
        ({}, {"objects": [ended("mug", 0.3, -0.28)]}, "belongs, but: mug"),
        ({}, {"objects": [ended("crate", 0.3, -0.4)]}, "belongs, but: crate"),
        ({}, {"objects": [ended("mug", 0.3, -0.4, fallen=True)]}, "fell off the table, but: mug"),
        ({}, {"links_on_table": {"hand": 3.0}}, "hand at 3 s"),
        ({}, {"links_on_person": {"hand": 3.0}}, "hand at 3 s"),
        ({}, {"least_distance_moving": 0.05}, "0.05 m"),
        ({"duration": 481.0}, {}, "481 s"),
    ],
)
def test_what_is_not_as_asked_is_said(report: dict[str, Any], changes: dict[str, Any], words: str) -> None:
    bad = [text for text, good in judged({**REPORT, **report}, truth(**changes)) if not good]
    assert len(bad) == 1 and words in bad[0]
