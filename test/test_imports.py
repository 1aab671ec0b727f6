"""The import rule: geometry <- robot <- capabilities, which do not know each other; ROS at the rim only; no circles.

The rule is the table `SUBPACKAGES`. ARCHITECTURE.md shows the same table, written from here:

    python test/test_imports.py
"""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGE = "morphit_ros"
BENCH = "morphit_bench"
REPOSITORY = Path(__file__).parent.parent
ROOT = REPOSITORY / PACKAGE


class Subpackage(NamedTuple):
    """A line of the table: what lies there, and which others it may import besides itself and the foundation."""

    holds: str
    may_import: frozenset[str] = frozenset()


def line(holds: str, may_import: str = "") -> Subpackage:
    return Subpackage(holds, frozenset(may_import.split()))


# Modules of the package itself that any subpackage may use.
FOUNDATION = {
    "errors": line("our errors: each names the value, the bound and the remedy"),
    "budgets": line("how much anything from outside may hold, checked before memory is taken for it"),
    "configuration": line("configuration dataclasses: default, range and meaning of a parameter, once"),
    "documents": line("YAML files, read without trust"),
    "resources": line("data files, cache, atomic writes"),
    "bags": line("recordings of topics as MCAP files, written and read without ROS"),
    "compilation": line("telling people that kernels are compiled"),
    "dependencies": line("projects of others: which extra needs what, and what to do where it is missing"),
    "history": line("undo and redo of immutable states"),
    "exports": line("names that a package imports when they are first used"),
    "bench": line("what only measures, by name: `morphit_bench`, which is installed apart"),
    "batch": line("many tasks by processes or a Dask scheduler's workers, written down as they finish"),
    "jit": line("numba's `njit` with a cache of compiled kernels that all processes share"),
}
CAPABILITIES = {
    "spheres": line("MorphIt: fit, metrics, proven cover, sphere model of a robot, formats", "geometry robot"),
    "superovoid": line("superovoids: shape, certified distances, fits, robots as superovoids", "geometry robot"),
    "sketch": line(
        "robots drawn by hand: bones, joints and superovoids, and the descriptions that they become",
        "geometry robot superovoid",
    ),
    "cover": line("morphing covers: kinematics, motors, controller, simulated cover", "geometry"),
    "neural": line(
        "objects as density fields: learning, solid and inertia, contact and motion, identification, planned pushes",
        "geometry",
    ),
    "perception": line("two clouds → registered scene → table, objects", "geometry"),
    "memory": line(
        "known things: by shape, with what picks taught of them; who is who between looks, and its whole shape",
        "geometry superovoid",
    ),
    "grasping": line("gripper data, DISF, planner from many starts, checks, completion", "geometry robot"),
    "motion": line("motion backends, paths among solids and their proof, reachability", "geometry robot spheres"),
    "execution": line("grasp sequence, watches, the gate in front of the controller", "geometry robot spheres"),
    "calibration": line("where cameras stand, by clouds of the moved arm; recordings of it", "geometry robot"),
    "contact_planning": line(
        "plans through contact: inverse-dynamics trajectory optimisation of arms, spheres and free objects",
        "geometry robot spheres superovoid",
    ),
    "contact_push": line(
        "pushes of an object with an arm's hand or forearm, planned through contact, and followed",
        "geometry robot spheres contact_planning",
    ),
    "cloth": line("a cloth that falls over superovoids: motion, contact, terrain from it", "geometry superovoid"),
    "simulation": line("MuJoCo workcell: robot, gripper, objects, depth cameras", "geometry robot grasping"),
}
SUBPACKAGES = {
    **FOUNDATION,
    "geometry": line("rigid motions, meshes, point clouds and their files, winding numbers, grids of points"),
    "robot": line("URDF, package:// resolution, kinematics, joint states and trajectories, workcell files", "geometry"),
    **CAPABILITIES,
    "display": line(
        "what is drawn, as one list, and its renderers for browser and pictures; the editors",
        "geometry robot cloth cover grasping neural sketch spheres superovoid",
    ),
    "replay": line(
        "planned pushes tried in MuJoCo, by a driven pusher or the simulated arm",
        "geometry robot contact_planning contact_push grasping motion neural simulation spheres",
    ),
    "proposal": line(
        "robot and gripper files proposed from a description: arm, hand, home", "geometry robot grasping spheres"
    ),
    "shape": line(
        "`Shape`, half of the front door: one shape as spheres, superovoid, surface or field",
        "geometry neural shape_results spheres superovoid",
    ),
    "shape_results": line("what `Shape` returns, each form with its error", "geometry neural spheres"),
    "robot_shape": line(
        "`Robot`, the other half: the links of a robot as shapes, spheres, superovoids",
        "robot shape spheres superovoid",
    ),
    "bringup": line("which nodes make up a job; supervisor of child processes", "geometry robot simulation"),
    "commands": line(
        "the command line `morphit`, a file a command",
        "geometry robot bringup calibration cloth contact_planning contact_push cover display grasping neural proposal "
        "replay simulation sketch spheres superovoid",
    ),
    "cli": line("`morphit` itself: finds the command", "commands"),
    "ros": line(
        "`core` (names and QoS, parameters, conversions, frames, runner) and one subpackage a capability",
        "geometry robot bringup calibration contact_planning contact_push cover display execution grasping memory "
        "motion neural perception spheres superovoid",
    ),
    "nodes": line(
        "one executable a file, thin",
        "geometry robot contact_planning contact_push cover display execution grasping motion neural memory perception "
        "ros simulation spheres",
    ),
}
# Exceptions narrower than a subpackage.
ONLY_MODULES = {
    ("simulation", "grasping"): {"grasping", "grasping.gripper", "grasping.suction.cup", "grasping.suction.load"}
}

ROS_PACKAGES = {
    "action_msgs", "ament_index_python", "builtin_interfaces", "control_msgs", "diagnostic_msgs", "geometry_msgs",
    "launch", "launch_ros", "lifecycle_msgs", "morphit_interfaces", "moveit", "moveit_configs_utils", "moveit_msgs",
    "rcl_interfaces", "rclpy", "rosgraph_msgs", "rosidl_runtime_py", "sensor_msgs", "shape_msgs", "std_msgs",
    "std_srvs", "tf2_geometry_msgs", "tf2_msgs", "tf2_ros", "trajectory_msgs", "unique_identifier_msgs",
    "visualization_msgs",
}  # fmt: skip
MAY_IMPORT_ROS = ("ros/", "nodes/", "motion/moveit_process/server.py")
# Asks the ament index where a package is, if there is one: not a dependency on a graph.
MAY_IMPORT_INDEX = ("robot/packages.py",)


def modules() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def full_name(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def statements(tree: ast.AST, for_types: bool) -> Iterator[ast.AST]:
    """All of a tree, or all but what stands under `if TYPE_CHECKING`."""
    for node in ast.iter_child_nodes(tree):
        if for_types or not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            yield node
            yield from statements(node, for_types)


@functools.cache
def imports(path: Path, for_types: bool = True) -> tuple[str, ...]:
    """Every module that a file imports, at any depth, with full names; on request without imports for types only."""
    name = full_name(path)
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    found: list[str] = []
    for node in statements(ast.parse(path.read_text(encoding="utf-8")), for_types):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = ROOT.parent.joinpath(*module.split("."), alias.name)
                # `from morphit_ros import grasping` imports a subpackage, too.
                is_module = inner.is_dir() or inner.with_suffix(".py").is_file() or module == PACKAGE
                found.append(f"{module}.{alias.name}" if module.startswith(PACKAGE) and is_module else module)
    return tuple(dict.fromkeys(found))


def subpackage_of(path: Path) -> str:
    relative = path.relative_to(ROOT)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def others(path: Path) -> Iterator[tuple[str, str]]:
    """(subpackage, full name) of what a file imports of other subpackages; the foundation is open to all."""
    own = subpackage_of(path)
    for name in imports(path):
        top, _, rest = name.partition(".")
        other = rest.partition(".")[0]
        # Of the nodes each is for itself.
        strange = other != own or (own == "nodes" and path.name != "__main__.py")
        if top == PACKAGE and rest and other not in FOUNDATION and strange:
            yield other, name


def breaches(path: Path) -> list[str]:
    """What a file imports against the rule."""
    relative = path.relative_to(ROOT).as_posix()
    own = subpackage_of(path)
    allowed = SUBPACKAGES[own].may_import
    found = []
    for other, name in others(path):
        if own == other == "nodes":
            found.append(f"{name}: nodes do not import each other")
        elif own in FOUNDATION or other not in allowed:
            found.append(f"{name}: {own} may import {sorted(allowed) or 'no other subpackage'}")
        elif (own, other) in ONLY_MODULES and name.removeprefix(f"{PACKAGE}.") not in ONLY_MODULES[own, other]:
            found.append(f"{name}: {own} may import only {sorted(ONLY_MODULES[own, other])}")
    for name in imports(path):
        top = name.partition(".")[0]
        if top == BENCH:
            found.append(f"{name}: what only measures is not installed with the suite")
        elif top in ROS_PACKAGES and not relative.startswith(MAY_IMPORT_ROS):
            if top == "ament_index_python" and relative in MAY_IMPORT_INDEX:
                continue
            found.append(f"{name}: ROS belongs into {', '.join(MAY_IMPORT_ROS)}")
    return found


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Sets of modules that import each other in a circle (Tarjan's strongly connected components)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        order[module] = low[module] = len(order)
        stack.append(module)
        for other in graph[module] & graph.keys():
            if other not in order:
                visit(other)
                low[module] = min(low[module], low[other])
            elif other in stack:
                low[module] = min(low[module], order[other])
        if low[module] == order[module]:
            circle = [*stack[stack.index(module) :]]
            del stack[stack.index(module) :]
            if len(circle) > 1:
                found.append(sorted(circle))

    for module in graph:
        if module not in order:
            visit(module)
    return found


def table() -> str:
    """The rule as ARCHITECTURE.md shows it."""
    rows = ["| subpackage | holds | may import |", "|---|---|---|"]
    for name, (holds, may_import) in SUBPACKAGES.items():
        folder = f"`{name}/`" if (ROOT / name).is_dir() else f"`{name}`"
        names = ", ".join(other for other in SUBPACKAGES if other in may_import)
        rows.append(f"| {folder} | {holds} | {names if names else 'nothing' if name in FOUNDATION else 'the above'} |")
    return "\n".join(rows)


def architecture(text: str) -> str:
    """ARCHITECTURE.md with the table as it should be."""
    begin, end = "<!-- written by test/test_imports.py -->\n\n", "\n\n<!-- end -->"
    before, after = text[: text.index(begin)], text[text.index(end) + len(end) :]
    return before + begin + table() + end + after


def test_architecture_shows_this_table() -> None:
    text = (REPOSITORY / "ARCHITECTURE.md").read_text(encoding="utf-8")
    assert text == architecture(text), "run: python test/test_imports.py"


def test_every_module_keeps_the_import_rule() -> None:
    assert list(imports(ROOT / "__init__.py")) == [f"{PACKAGE}.exports"]
    found = {}
    for path in modules():
        if path != ROOT / "__init__.py":
            assert subpackage_of(path) in SUBPACKAGES, f"{subpackage_of(path)} is unknown: give it a place in the rule"
            if wrong := breaches(path):
                found[path.relative_to(ROOT).as_posix()] = wrong
    assert found == {}


@pytest.mark.parametrize("name", sorted(SUBPACKAGES))
def test_nothing_is_allowed_that_is_not_imported(name: str) -> None:
    imported = {other for path in modules() if subpackage_of(path) == name for other, _ in others(path)}
    assert SUBPACKAGES[name].may_import <= imported


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert circles({full_name(path): set(imports(path, for_types=False)) for path in modules()}) == []


def test_a_circle_is_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": set()}
    assert circles(graph) == [["a", "b", "c"]]


def test_what_measures_imports_no_ros() -> None:
    found = [(path.name, name) for path in (REPOSITORY / BENCH).rglob("*.py") for name in bench_imports(path)]
    assert len(found) > 100
    assert [(file, name) for file, name in found if name.partition(".")[0] in ROS_PACKAGES] == []


def bench_imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


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
        ("motion/moveit.py", "import moveit.planning"),
        ("simulation/new.py", "from morphit_ros.grasping.planner import plan_grasps"),
        ("spheres/new.py", "from morphit_interfaces.msg import Sphere"),
        ("nodes/new.py", "from morphit_ros.nodes.pick_client import PickClient"),
        ("nodes/new.py", "from morphit_ros.nodes import pick_client"),
        ("nodes/new.py", "from . import pick_client"),
        ("bringup/new.py", "from launch import LaunchDescription"),
        ("errors.py", "import morphit_ros.geometry"),
        ("spheres/new.py", "from morphit_bench.spheres import collision_truth"),
    ],
)
def test_rule_finds_a_breach(place: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "ROOT", tmp_path / PACKAGE)
    path = tmp_path / PACKAGE / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(line, encoding="utf-8")
    assert breaches(path)


@pytest.mark.parametrize(
    ("place", "line"),
    [
        ("execution/new.py", "from morphit_ros.spheres import SphereModel"),
        ("motion/moveit_process/server.py", "from moveit.planning import MoveItPy"),
        ("simulation/new.py", "from morphit_ros.grasping.gripper import Gripper"),
        ("nodes/new.py", "from morphit_ros.ros import interfaces\nimport rclpy"),
        ("spheres/new.py", "from morphit_ros.errors import MorphitError\nimport torch"),
    ],
)
def test_rule_allows_what_it_should(place: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "ROOT", tmp_path / PACKAGE)
    path = tmp_path / PACKAGE / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(line, encoding="utf-8")
    assert breaches(path) == []


if __name__ == "__main__":
    document = REPOSITORY / "ARCHITECTURE.md"
    document.write_text(architecture(document.read_text(encoding="utf-8")), encoding="utf-8")
    sys.exit(0)
