"""Writes requirements.txt and requirements-ros.txt: what dependencies.py lists, with the versions of constraints.txt.

To take another version, write it into constraints.txt and run this; `make setup` installs it, and `make lock` writes
down what came along.
"""

from __future__ import annotations

import re
from pathlib import Path

from morphit_ros.dependencies import DEPENDENCIES, EXTRAS, Dependency

ROOT = Path(__file__).parents[1]
WRITTEN = "# Written by tools/requirements.py from morphit_ros/dependencies.py and constraints.txt."
# Builds this package itself, where pip makes no environment of its own for that.
BUILDS = "setuptools"
HEADS = {
    "requirements.txt": f"""{WRITTEN}
# All that morphit_ros runs on without a ROS installation:
#   pip install -r requirements.txt -c constraints.txt
""",
    "requirements-ros.txt": f"""{WRITTEN}
# For beside a ROS 2 Jazzy installation: requirements.txt without ROS wheels, py_trees, xacro, urdf_parser_py (there
# urdfdom_py) and setuptools, which are the installation's own. For a venv made with --system-site-packages:
#   pip install -r requirements-ros.txt -c constraints.txt
""",
}
# The installation's own; its NumPy and what is built against it are not: the wheels want later ones.
OF_ROS = {"xacro", "urdf-parser-py"}


def normal(name: str) -> str:
    """A project's name as registries compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def locked() -> dict[str, str]:
    """Project → version in constraints.txt."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = (line.split("==") for line in lines if line and not line.startswith("#"))
    return {normal(name): version for name, version in pins}


def content(name: str) -> str:
    """The text of a requirements file."""
    versions, lines = locked(), [HEADS[name]]
    of_ros = name == "requirements-ros.txt"

    def pin(entry: Dependency) -> str:
        options = f"[{entry.options}]" if entry.options else ""
        return f"{entry.project}{options}=={versions[normal(entry.project)]}\n"

    groups = {"": "everything"} | EXTRAS
    for extra, purpose in groups.items():
        # Each project once, with the first that needs it.
        here = [entry for entry in DEPENDENCIES if (entry.extras.split() or [""])[0] == extra]
        here = [entry for entry in here if not of_ros or (extra != "ros" and entry.project not in OF_ROS)]
        if here:
            lines.append(f"# {f'[{extra}] ' if extra else ''}{purpose}\n" + "".join(map(pin, here)))
    if not of_ros:
        lines.append(f"# builds this package itself\n{BUILDS}=={versions[BUILDS]}\n")
    return "\n".join(lines)


def main() -> None:
    for name in HEADS:
        (ROOT / name).write_text(content(name), encoding="utf-8")


if __name__ == "__main__":
    main()
