"""What a node imports before it runs: each heavy package costs every start, and a job starts eight nodes.

The imports are read, not run: those at the head of a module, of what it imports, and so on, as Python would follow
them. Imports within functions come when they are needed and are left out.
"""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = "morphit_ros"
ROOT = Path(__file__).parent.parent

# Packages that take tens of milliseconds or more. NumPy is not among them: rclpy itself imports it.
HEAVY = {
    "PIL", "cma", "coacd", "coal", "manifold3d", "matplotlib", "mujoco", "numba", "open3d", "pinocchio", "roboplan",
    "scipy.constants", "scipy.fft", "scipy.interpolate", "scipy.linalg", "scipy.ndimage", "scipy.optimize",
    "scipy.signal", "scipy.sparse", "scipy.spatial", "scipy.special", "scipy.stats", "torch", "trimesh", "viser",
    "xacro", "yourdfpy",
}  # fmt: skip

# Node → what it may import at its start. More needs a reason: that its start uses it in any case.
ALLOWED = {
    "arm_client": set(),
    "contact_planning": {"numba"},
    # The controller solves with LAPACK and closes loops by sparse matrices.
    "cover_control": {"numba", "scipy.linalg", "scipy.sparse"},
    "cover_sim": {"numba", "scipy.linalg", "scipy.sparse"},
    "grasp_execution": {"numba"},
    # The warm-up completes a shape.
    "grasp_planning": {"numba", "scipy.ndimage", "scipy.spatial"},
    # Checks of commands are compiled before the first one.
    "motion_gate": {"numba"},
    # The warm-up cuts a solid.
    "neural_object": {"numba", "scipy.ndimage", "scipy.spatial"},
    "person_monitor": {"numba"},
    "pick_client": set(),
    "player": set(),
    "recorder": set(),
    "robot_spheres": {"numba"},
    "scene_perception": {"numba"},
    "separation_monitor": {"numba"},
    "superovoid_distance": {"numba"},
    "task_execution": {"numba"},
    "web_viewer": {"numba"},
    # The simulation must not stop for it when the first trajectory arrives.
    "workcell_sim": {"numba", "scipy.interpolate"},
}


def heavy_of(module: str) -> str:
    """The entry of `HEAVY` that a module belongs to, empty if to none."""
    parts = module.split(".")
    return next((".".join(parts[:k]) for k in (1, 2) if ".".join(parts[:k]) in HEAVY), "")


def is_type_checking(test: ast.expr) -> bool:
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


def run_at_import(nodes: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Import statements that run when the module is imported."""
    for node in nodes:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node
        elif isinstance(node, ast.If):
            yield from run_at_import(node.orelse if is_type_checking(node.test) else node.body + node.orelse)
        elif isinstance(node, (ast.Try, ast.With, ast.ClassDef, ast.For)):
            yield from run_at_import(node.body)


def source_of(module: str) -> Path | None:
    path = ROOT.joinpath(*module.split("."))
    return next((found for found in (path / "__init__.py", path.with_suffix(".py")) if found.is_file()), None)


@functools.cache
def lazy_names(package: str) -> dict[str, str]:
    """Name → module, of a package whose names are imported when they are first used: its stub lists them."""
    source = source_of(package)
    stub = source.with_suffix(".pyi") if source else None
    tree = ast.parse(stub.read_text(encoding="utf-8")) if stub and stub.is_file() else ast.Module([], [])
    return {
        alias.name: f"{package}.{node.module}"
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


@functools.cache
def imported(module: str) -> frozenset[str]:
    """Modules that importing one runs directly, with the packages they lie in."""
    source = source_of(module)
    assert source is not None, module
    found: set[str] = set()
    for node in run_at_import(ast.parse(source.read_text(encoding="utf-8")).body):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
            continue
        assert node.level == 0 and node.module, f"{module}: imports are written with full names"
        found.add(node.module)
        for alias in node.names:
            name = f"{node.module}.{alias.name}"
            # A submodule, ours or somebody's (`from scipy import ndimage`), or a name that is there on demand.
            if heavy_of(name) or (node.module.startswith(PACKAGE) and source_of(name)):
                found.add(name)
            elif node.module.startswith(PACKAGE):
                found |= {lazy_names(node.module)[alias.name]} if alias.name in lazy_names(node.module) else set()
    for name in list(found):
        found |= {name.rsplit(".", depth)[0] for depth in range(1, name.count(".") + 1)}
    return frozenset(found - {module})


def heavy_at_start(node: str) -> dict[str, str]:
    """Heavy package → the chain of modules by which a node imports it."""
    start = f"{PACKAGE}.nodes.{node}"
    chains = {start: node}
    waiting, heavy = [start], {}
    while waiting:
        module = waiting.pop(0)
        for name in sorted(imported(module)):
            if heavy_of(name):
                heavy.setdefault(heavy_of(name), chains[module])
            elif name.startswith(f"{PACKAGE}.") and name not in chains and source_of(name):
                chains[name] = f"{chains[module]} > {name.removeprefix(f'{PACKAGE}.')}"
                waiting.append(name)
    return heavy


@pytest.mark.parametrize("node", sorted(ALLOWED))
def test_a_node_imports_no_more_than_it_needs_to_start(node: str) -> None:
    too_much = {name: chain for name, chain in heavy_at_start(node).items() if name not in ALLOWED[node]}
    assert not too_much, "import it in the function that uses it"


@pytest.mark.parametrize("node", sorted(ALLOWED))
def test_nothing_is_allowed_that_is_not_imported(node: str) -> None:
    assert ALLOWED[node] <= set(heavy_at_start(node))


def test_reading_the_imports_agrees_with_running_them() -> None:
    pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy and the message packages)")
    node = "grasp_execution"
    code = f"import sys, {PACKAGE}.nodes.{node}; print(*sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert {heavy_of(module) for module in result.stdout.split()} - {""} == set(heavy_at_start(node))
