"""The import rule: geometry <- robot <- capabilities, which do not know each other; ROS at the rim only."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = "morphit_ros"
ROOT = Path(__file__).parent.parent / PACKAGE

CAPABILITIES = {"spheres", "superovoid", "perception", "grasping", "execution", "cover", "neural", "simulation"}

# Modules of the package itself that any room may use.
FOUNDATION = {"errors", "configuration", "resources", "compilation", "lazy_exports"}

# Shape and Robot, at the top of the package.
FRONT_DOOR = ("shape", "shape_results", "robot_shape")

# Room → rooms that it may import besides itself and the foundation. ARCHITECTURE.md gives the reasons.
ALLOWED = {
    "geometry": set(),
    "robot": {"geometry"},
    **{room: {"geometry", "robot"} for room in CAPABILITIES},
    # Its collision model is the sphere model.
    "execution": {"geometry", "robot", "spheres"},
    # It builds the gripper that the robot carries, from the planner's data.
    "simulation": {"geometry", "robot", "grasping"},
    # Draws what all capabilities make.
    "viewing": {"geometry", "robot"} | CAPABILITIES,
    "bringup": {"geometry", "robot"},
    # Runs whole picks and measures them.
    "evaluation": {"geometry", "robot", "bringup", "viewing", "commands"} | CAPABILITIES,
    "commands": {"geometry", "robot", "bringup", "viewing", "evaluation"} | CAPABILITIES,
    "cli": {"commands"},
    # The front door calls all capabilities; they do not know it.
    **{module: {"geometry", "robot", *FRONT_DOOR} | CAPABILITIES for module in FRONT_DOOR},
    "ros": {"geometry", "robot", "bringup", "viewing"} | CAPABILITIES,
    "nodes": {"geometry", "robot", "bringup", "viewing", "ros"} | CAPABILITIES,
    **{module: set() for module in FOUNDATION},
}
# Exceptions narrower than a room.
ONLY_MODULES = {("simulation", "grasping"): {"grasping", "grasping.gripper"}}

ROS_PACKAGES = {
    "action_msgs", "ament_index_python", "builtin_interfaces", "control_msgs", "diagnostic_msgs", "geometry_msgs",
    "launch", "launch_ros", "lifecycle_msgs", "morphit_interfaces", "moveit", "moveit_configs_utils", "moveit_msgs",
    "rcl_interfaces", "rclpy", "rosgraph_msgs", "rosidl_runtime_py", "sensor_msgs", "shape_msgs", "std_msgs",
    "std_srvs", "tf2_geometry_msgs", "tf2_msgs", "tf2_ros", "trajectory_msgs", "unique_identifier_msgs",
    "visualization_msgs",
}  # fmt: skip
MAY_IMPORT_ROS = ("ros/", "nodes/", "execution/backends/moveit.py")
# Asks the ament index where a package is, if there is one: not a dependency on a graph.
MAY_IMPORT_INDEX = ("robot/packages.py",)


def modules() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def imports(path: Path) -> Iterator[str]:
    """Every module that a file imports, at any depth, with full names."""
    package = [PACKAGE, *path.relative_to(ROOT).parent.parts]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            # `from morphit_ros import grasping` imports a room, too.
            if module in (PACKAGE, f"{PACKAGE}.nodes"):
                for alias in node.names:
                    yield f"{module}.{alias.name}"
            else:
                yield module


def room_of(path: Path) -> str:
    relative = path.relative_to(ROOT)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def breaches(path: Path) -> list[str]:
    """What a file imports against the rule."""
    relative = path.relative_to(ROOT).as_posix()
    room = room_of(path)
    found = []
    for name in imports(path):
        top, _, rest = name.partition(".")
        if top == PACKAGE and rest:
            other = rest.split(".")[0]
            if other in FOUNDATION or (other == room and room != "nodes"):
                continue
            if room == "nodes" and other == "nodes":
                found.append(f"{name}: nodes do not import each other")
            elif other not in ALLOWED[room]:
                found.append(f"{name}: {room} may import {sorted(ALLOWED[room]) or 'no other room'}")
            elif (room, other) in ONLY_MODULES and rest not in ONLY_MODULES[room, other]:
                found.append(f"{name}: {room} may import only {sorted(ONLY_MODULES[room, other])}")
        elif top in ROS_PACKAGES and not relative.startswith(MAY_IMPORT_ROS):
            if top == "ament_index_python" and relative in MAY_IMPORT_INDEX:
                continue
            found.append(f"{name}: ROS belongs into {', '.join(MAY_IMPORT_ROS)}")
    return found


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_module_keeps_the_import_rule(path: Path) -> None:
    if path == ROOT / "__init__.py":
        # Its names are imported when they are first used: its stub lists them.
        assert list(imports(path)) == ["lazy_loader"]
        return
    assert room_of(path) in ALLOWED, f"room '{room_of(path)}' is unknown: give it a place in the rule"
    assert breaches(path) == []


@pytest.mark.parametrize(
    ("place", "line"),
    [
        ("geometry/new.py", "from morphit_ros.robot import description"),
        ("robot/new.py", "import morphit_ros.spheres.fit"),
        ("perception/new.py", "from morphit_ros.grasping import Gripper"),
        ("perception/new.py", "from morphit_ros import grasping"),
        ("perception/new.py", "from ..grasping import gripper"),
        ("grasping/new.py", "def f():\n    from rclpy.node import Node"),
        ("execution/new.py", "import moveit.planning"),
        ("simulation/new.py", "from morphit_ros.grasping.planner import plan_grasps"),
        ("spheres/new.py", "from morphit_interfaces.msg import Sphere"),
        ("nodes/new.py", "from morphit_ros.nodes.pick_client import PickClient"),
        ("nodes/new.py", "from morphit_ros.nodes import pick_client"),
        ("nodes/new.py", "from . import pick_client"),
        ("bringup/new.py", "from launch import LaunchDescription"),
        ("errors.py", "import morphit_ros.geometry"),
    ],
)
def test_rule_finds_a_breach(place: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    path = tmp_path / place
    path.parent.mkdir(exist_ok=True)
    path.write_text(line, encoding="utf-8")
    assert breaches(path)


@pytest.mark.parametrize(
    ("place", "line"),
    [
        ("execution/new.py", "from morphit_ros.spheres import SphereModel"),
        ("execution/backends/moveit.py", "from moveit.planning import MoveItPy"),
        ("simulation/new.py", "from morphit_ros.grasping.gripper import Gripper"),
        ("nodes/new.py", "from morphit_ros.ros import interfaces\nimport rclpy"),
        ("spheres/new.py", "from morphit_ros.errors import MorphitError\nimport torch"),
    ],
)
def test_rule_allows_what_it_should(place: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    path = tmp_path / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(line, encoding="utf-8")
    assert breaches(path) == []
