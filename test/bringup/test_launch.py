"""The launch files: with a strict stand-in everywhere, with the real launch where that is installed."""

from __future__ import annotations

import importlib
import importlib.util
import runpy
import shlex
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from morphit_ros.bringup import JOBS, find_job
from morphit_ros.bringup.job import MOST_RESTARTS, REFUSED

ROOT = Path(__file__).parents[2]
LAUNCH_FILES = sorted((ROOT / "launch").glob("*.launch.py"))
# Not find_spec("launch") alone: the folder launch/ of this repository would do for that.
HAS_LAUNCH = importlib.util.find_spec("launch_ros") is not None


class Recorded:
    """An action or substitution that accepts exactly the arguments that launch's own does."""

    allowed: tuple[str, ...] = ()

    def __init__(self, *positional: Any, **named: Any) -> None:
        unknown = set(named) - set(self.allowed)
        assert not unknown, f"{type(self).__name__} has no argument {sorted(unknown)}"
        self.positional = positional
        self.named = named


class DeclareLaunchArgument(Recorded):
    allowed = ("default_value", "description", "choices")


class OpaqueFunction(Recorded):
    allowed = ("function", "args", "kwargs")


class Shutdown(Recorded):
    allowed = ("reason",)


class LaunchDescription(Recorded):
    pass


class LaunchConfiguration(Recorded):
    def perform(self, context: dict[str, str]) -> str:
        return context[self.positional[0]]


class Node(Recorded):
    allowed = (
        "package", "executable", "name", "namespace", "parameters", "remappings", "arguments", "output",
        "emulate_tty", "on_exit", "additional_env", "respawn", "respawn_delay", "prefix", "exec_name",
    )  # fmt: skip


class ParameterValue(Recorded):
    allowed = ("value_type",)


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    contents: dict[str, dict[str, Any]] = {
        "launch": {"LaunchContext": dict, "LaunchDescription": LaunchDescription},
        "launch.actions": {
            "DeclareLaunchArgument": DeclareLaunchArgument, "OpaqueFunction": OpaqueFunction, "Shutdown": Shutdown,
        },
        "launch.substitutions": {"LaunchConfiguration": LaunchConfiguration},
        "launch_ros": {},
        "launch_ros.actions": {"Node": Node},
        "launch_ros.parameter_descriptions": {"ParameterValue": ParameterValue},
    }  # fmt: skip
    for name, content in contents.items():
        module = types.ModuleType(name)
        module.__dict__.update(content)
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, "morphit_ros.ros.core.launch_actions", raising=False)
    yield  # type: ignore[misc]
    # The module that was imported with the stand-in must not stay.
    sys.modules.pop("morphit_ros.ros.core.launch_actions", None)


def described(path: Path) -> list[Any]:
    (actions,) = runpy.run_path(str(path))["generate_launch_description"]().positional
    return actions


def started(actions: list[Any], **given: str) -> dict[str, Node]:
    """The nodes that the description starts with these arguments."""
    context = {a.positional[0]: a.named["default_value"] for a in actions if isinstance(a, DeclareLaunchArgument)}
    assert set(given) <= set(context)
    # The first sees what was typed alone, before anything is declared.
    first, last = (action for action in actions if isinstance(action, OpaqueFunction))
    assert actions[0] is first
    first.named["function"](types.SimpleNamespace(launch_configurations=given))
    found = last.named["function"]({**context, **given}, *last.named["args"])
    return {node.named["name"] or node.named["executable"]: node for node in found}


def test_there_is_a_launch_file_for_every_job() -> None:
    assert {path.name for path in LAUNCH_FILES} == {f"{name}.launch.py" for name in JOBS}


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize("path", LAUNCH_FILES, ids=lambda path: path.name)
def test_arguments_are_declared_with_description_and_choices(path: Path) -> None:
    declared = {a.positional[0]: a.named for a in described(path) if isinstance(a, DeclareLaunchArgument)}
    job = find_job(path.name.removesuffix(".launch.py"))
    assert list(declared) == [argument.name for argument in job.arguments]
    assert all(named["description"] for named in declared.values())
    for argument in job.arguments:
        named = declared[argument.name]
        # launch compares texts: a default in another spelling than its choice would be refused.
        assert named["choices"] is None or named["default_value"] in named["choices"]
        # Nor would it take True for a switch.
        assert not isinstance(argument.default, bool) or named["choices"] is None


@pytest.mark.usefixtures("stand_in")
def test_switches_are_taken_in_any_spelling() -> None:
    given = {"robot": "panda", "sim": "True", "execution": "FALSE"}
    (parameters,) = started(described(ROOT / "launch/moveit.launch.py"), **given)["move_group"].named["parameters"]
    assert parameters["allow_trajectory_execution"] is False


@pytest.mark.usefixtures("stand_in")
def test_launch_starts_the_same_nodes_as_the_supervisor() -> None:
    found = started(described(ROOT / "launch/grasp.launch.py"), pick="true", viewer="false")
    expected = {node.node_name: node for node in find_job("grasp").nodes({"pick": "true", "viewer": "false"})}
    assert list(found) == list(expected)
    for name, node in found.items():
        assert node.named["package"] == "morphit_ros"
        assert node.named["executable"] == expected[name].executable
        (parameters,) = node.named["parameters"]
        values = {k: v.positional[0] if isinstance(v, ParameterValue) else v for k, v in parameters.items()}
        assert values == dict(expected[name].parameters)


@pytest.mark.usefixtures("stand_in")
def test_a_workcells_file_counts_where_nothing_was_typed() -> None:
    found = started(described(ROOT / "launch/system.launch.py"), workcell="ur3e_hande")
    assert found["grasp_execution"].named["parameters"][0]["robot"].positional == ("ur3e_hande",)
    found = started(described(ROOT / "launch/system.launch.py"), workcell="ur3e_hande", robot="panda")
    assert found["grasp_execution"].named["parameters"][0]["robot"].positional == ("panda",)


@pytest.mark.usefixtures("stand_in")
def test_move_group_is_started_by_launch_as_by_the_supervisor() -> None:
    found = started(described(ROOT / "launch/moveit.launch.py"), robot="ur3e_hande")
    expected = {node.node_name: node for node in find_job("moveit").nodes({"robot": "ur3e_hande"})}
    assert list(found) == list(expected) == ["robot_spheres", "move_group"]
    assert found["move_group"].named["package"] == "moveit_ros_move_group"
    # Its process has further nodes, which would all be called so.
    assert found["move_group"].named["name"] is None
    assert found["move_group"].named["remappings"] == [("robot_description", "robot_description_spheres")]
    (parameters,) = found["move_group"].named["parameters"]
    # No signal ends it while it waits for a description: who does that in its place becomes it.
    assert shlex.split(found["move_group"].named["prefix"]) == list(expected["move_group"].prefix)
    assert found["move_group"].named["exec_name"] == "move_group"
    assert "prefix" not in found["robot_spheres"].named
    # The SRDF stays a text: launch_ros would take it for YAML.
    assert parameters["robot_description_semantic"].named == {"value_type": str}


@pytest.mark.usefixtures("stand_in")
def test_texts_stay_texts_and_every_end_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    # No object has a name that YAML takes for a number; the next one may.
    monkeypatch.setattr("morphit_ros.bringup.grasp._check_object", lambda values: None)
    found = started(described(ROOT / "launch/grasp.launch.py"), pick="true", object="123")
    (parameters,) = found["workcell_sim"].named["parameters"]
    assert parameters["object"].positional == ("123",)
    assert parameters["object"].named == {"value_type": str}
    again = {name: node for name, node in found.items() if node.named.get("respawn")}
    assert set(again) == {"scene_perception", "grasp_planning"}
    for name, node in found.items():
        if name not in again:
            (action,) = node.named["on_exit"]
            assert isinstance(action, Shutdown)
    # launch starts them again unless what is done at their end ends it all.
    for status, most in ((-9, MOST_RESTARTS), (REFUSED, 0)):
        for node in started(described(ROOT / "launch/grasp.launch.py"), pick="true", object="123").values():
            if node.named.get("respawn"):
                ended = types.SimpleNamespace(returncode=status)
                assert [node.named["on_exit"](ended, {}) for _ in range(most)] == [None] * most
                assert isinstance(node.named["on_exit"](ended, {}), Shutdown)


@pytest.mark.skipif(not HAS_LAUNCH, reason="launch_ros is not installed (it comes with a ROS 2 installation only)")
@pytest.mark.parametrize("path", LAUNCH_FILES, ids=lambda path: path.name)
def test_real_launch_declares_the_arguments_and_makes_the_nodes(path: Path) -> None:
    from launch import LaunchContext
    from launch_ros.actions import Node as RealNode

    description = runpy.run_path(str(path))["generate_launch_description"]()
    job = find_job(path.name.removesuffix(".launch.py"))
    assert [argument.name for argument in description.get_launch_arguments()] == [a.name for a in job.arguments]
    context = LaunchContext()
    made: list[Any] = []
    for entity in description.entities:
        made += entity.visit(context) or []
    assert [type(node) for node in made] == [RealNode] * len(job.nodes({}))
