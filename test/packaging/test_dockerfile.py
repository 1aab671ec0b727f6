"""The Dockerfile: its image is named, it runs as nobody special, leaves no package lists, and copies what there is."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def instructions(text: str) -> list[tuple[str, str]]:
    """Instruction and its words, lines that go on joined."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [tuple(line.split(None, 1)) for line in joined.splitlines() if line.strip()]  # type: ignore[misc]


STEPS = instructions((ROOT / "Dockerfile").read_text(encoding="utf-8"))


def words(name: str) -> list[str]:
    return [rest for instruction, rest in STEPS if instruction == name]


def test_the_image_is_of_jazzy_and_can_be_given_by_digest() -> None:
    assert STEPS[0] == ("ARG", "ROS_IMAGE=ros:jazzy")
    assert words("FROM") == ["${ROS_IMAGE}"]


def test_package_lists_are_removed_in_the_layer_that_fetched_them() -> None:
    fetching = [command for command in words("RUN") if "apt-get update" in command]
    assert len(fetching) == 2
    for command in fetching:
        assert "rm -rf /var/lib/apt/lists/*" in command.rpartition("&&")[2]
    for command in words("RUN"):
        assert "apt-get update" in command or not re.search(r"apt-get install|rosdep install", command)
        if "pip install" in command:
            assert "--no-cache-dir" in command and "--constraint constraints.txt" in command


def test_what_runs_has_no_rights_of_root() -> None:
    (user,) = words("USER")
    assert user.isdigit() and int(user) >= 1000
    assert any(f"--uid {user} " in command for command in words("RUN"))
    last = max(i for i, (name, _) in enumerate(STEPS) if name == "USER")
    assert [name for name, _ in STEPS[last:] if name in ("COPY", "ADD")] == []
    assert words("ADD") == []


def test_what_is_copied_exists_and_no_environment_comes_along() -> None:
    for rest in words("COPY"):
        for source in rest.split()[:-1]:
            assert (ROOT / source).exists(), source
    left_out = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert {".git", ".venv", ".colcon", "build", "install", "log"} <= set(left_out)


def test_every_library_that_the_set_up_installs_is_there() -> None:
    script = (ROOT / "tools/system_packages.sh").read_text(encoding="utf-8")
    # What only the tests need comes last, and users don't need it.
    runs, tests = script.split('if [ "$purpose" = test ]')
    assert "libeigen3-dev" in tests
    wanted = set(re.findall(r"\blib[\w.+-]+(?=$)", runs, re.MULTILINE)) - {"libraries"}
    assert {"libusb-1.0-0", "libegl1"} <= wanted
    assert wanted <= set(" ".join(words("RUN")).split())


def test_ros_packages_are_those_of_the_manifests() -> None:
    (command,) = [command for command in words("RUN") if "rosdep install" in command]
    for folder in ("src/morphit_ros", "src/morphit_ros/morphit_interfaces"):
        assert folder in command
        assert any(copied.endswith(f" {folder}/") for copied in words("COPY"))
