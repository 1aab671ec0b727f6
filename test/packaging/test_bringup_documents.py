"""Installation, real robots and bring-up: commands, arguments, parameters and files that they name exist."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from morphit_ros.bringup import JOBS, parse_assignments
from morphit_ros.execution.sequence_config import SequenceConfig
from morphit_ros.motion.embedded import EmbeddedConfig

ROOT = Path(__file__).parents[2]
NAMES = ("installation.md", "moveit.md", "real_robot.md")
DOCUMENTS = sorted([*(ROOT / "docs").glob("bringup_*.md"), *(ROOT / "docs" / name for name in NAMES)])
IDENTITY = "'0 0 0 0 0 0 1'"


def launch_commands(text: str) -> list[tuple[str, list[str]]]:
    """Job and ``name:=value`` words of every ``ros2 launch morphit_ros`` in a document."""
    joined = text.replace("\\\n", " ")
    found = []
    for job, rest in re.findall(r"ros2 launch morphit_ros (\w+)\.launch\.py([^`\n]*)", joined):
        words = re.findall(r"(\w+):=('[^']*'|\S+)", rest)
        found.append((job, [f"{name}:={value}" for name, value in words]))
    return found


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_launch_commands_are_taken_by_their_jobs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMENT_PREFIX_PATH", "")
    commands = launch_commands(path.read_text(encoding="utf-8"))
    assert commands
    (tmp_path / "first_motions.yaml").write_text("", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for job, words in commands:
        filled = [word.replace("'…'", IDENTITY).replace("'", "") for word in words if "FOLDER" not in word]
        assert JOBS[job].nodes(parse_assignments(filled)), words


def test_parameters_of_the_first_motions_exist_and_slow_the_arm_down() -> None:
    text = (ROOT / "docs/bringup_ur3e_hande.md").read_text(encoding="utf-8")
    blocks = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", text, re.S)]
    (values,) = (block["grasp_execution"]["ros__parameters"] for block in blocks if "grasp_execution" in block)
    embedded: dict[str, Any] = values.pop("embedded")
    slow, usual = EmbeddedConfig.from_flat(embedded), EmbeddedConfig()
    assert slow.velocity_scaling <= 0.1 < usual.velocity_scaling
    careful = SequenceConfig.from_flat(values)
    assert careful.approach_speed <= 0.02 < SequenceConfig().approach_speed


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_files_that_are_named_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for name in re.findall(r"(?:docs|config|urdf)/[\w/.]+\.(?:md|yaml|urdf\.xacro)", text):
        # The maker's package has a folder urdf, too.
        assert (ROOT / name).is_file() or f"ur_description/{name}" in text, name
    for link in re.findall(r"\]\(([\w.]+\.md)\)", text):
        assert (path.parent / link).is_file(), link
