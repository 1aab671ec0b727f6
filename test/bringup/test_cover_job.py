"""The cover job: which nodes its arguments make, and that RViz shows what the control publishes."""

from __future__ import annotations

import pytest
import yaml

from morphit_ros.bringup import WhenEnded, find_job
from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.resources import resource


def nodes(**given: str) -> dict[str, dict[str, object]]:
    return {node.node_name: dict(node.parameters) for node in find_job("cover").nodes(given)}


def test_rows_and_columns_with_a_target() -> None:
    found = nodes(rows="5", cols="6", target="x*y", state_timeout="5", overrun_limit="10")
    assert list(found) == ["cover_sim", "cover_control", "web_viewer"]
    for name in ("cover_sim", "cover_control"):
        assert (found[name]["rows"], found[name]["cols"]) == (5, 6)
    assert found["cover_control"]["target"] == "x*y"
    assert found["cover_control"]["autostart"] is True
    assert (found["cover_control"]["state_timeout"], found["cover_control"]["overrun_limit"]) == (5.0, 10.0)
    assert found["web_viewer"]["scene"] == "cover"
    assert "sin(" in str(nodes()["cover_control"]["target"])


def test_a_case_brings_its_target() -> None:
    thigh = nodes(case="4x8", noise="true")
    assert thigh["cover_control"]["target"] == ""
    assert thigh["cover_sim"] == {"case": "4x8", "rate": 100.0, "paper_noise": True}


def test_hardware_with_rviz() -> None:
    found = find_job("cover").nodes(
        {"sim": "false", "cover_file": "mine.json", "autostart": "false", "viewer": "false", "rviz": "true"}
    )
    assert [node.node_name for node in found] == ["cover_control", "rviz2"]
    assert found[0].parameters["cover_file"] == "mine.json"
    assert found[0].parameters["autostart"] is False
    assert found[1].when_ended is WhenEnded.CONTINUE
    assert found[1].arguments[1].endswith("cover.rviz")


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"case": "9x9"}, ResourceNotFoundError, "9x9"),
        ({"case": "8x8", "cover_file": "mine.json"}, InvalidInputError, "at most one"),
        ({"rows": "0"}, InvalidInputError, "rows"),
        ({"cols": "101"}, InvalidInputError, "cols"),
        ({"sim": "false", "noise": "true"}, InvalidInputError, "noise"),
        ({"state_source": "cameras"}, InvalidInputError, "poses"),
    ],
)
def test_bad_arguments(given: dict[str, str], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        find_job("cover").nodes(given)


def test_rviz_shows_the_cover() -> None:
    content = yaml.safe_load(resource("rviz/cover.rviz").read_text(encoding="utf-8"))
    topics = [
        display["Topic"] for display in content["Visualization Manager"]["Displays"] if "Topic" in display
    ]  # fmt: skip
    assert [topic["Value"] for topic in topics] == ["cover/markers"]
    assert topics[0]["Durability Policy"] == "Transient Local"
