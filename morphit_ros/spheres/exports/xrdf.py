"""XRDF, which cuMotion, Isaac ROS, Isaac Sim and cuRobo read beside a URDF; and back.

Format: "Extended Robot Description Format (XRDF)" of the Isaac ROS documentation, version 1.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from morphit_ros.errors import InvalidInputError
from morphit_ros.robot.description import RobotDescription
from morphit_ros.spheres.exports.planner import MotionPlannerConfig, planner_facts
from morphit_ros.spheres.exports.records import imported_model
from morphit_ros.spheres.exports.urdf import check_links, check_padding
from morphit_ros.spheres.exports.yaml_documents import (
    entry,
    ignore_entries,
    read_yaml,
    sphere_entries,
    sphere_rows,
    write_yaml,
)
from morphit_ros.spheres.robot_model import SphereModel
from morphit_ros.spheres.self_collision.matrix import SelfCollisionMatrix


def xrdf_from_model(
    model: SphereModel,
    description: RobotDescription,
    self_collision: SelfCollisionMatrix,
    config: MotionPlannerConfig | None = None,
    home: Mapping[str, float] | None = None,
    padding: float = 0.0,
) -> str:
    """An XRDF 1.0 document.

    Args:
        model: the robot as spheres.
        description: the robot.
        self_collision: its ignored pairs become `self_collision: ignore`.
        config: what is in no URDF; XRDF demands limits of acceleration and jerk.
        home: `default_joint_positions` by joint.
        padding: `buffer_distance` of every link [m]; the radii stay as they are.

    Raises:
        InvalidInputError: an unknown link, or a padding that makes a radius vanish.
    """
    settings = config or MotionPlannerConfig()
    check_padding(model, padding)
    check_links(model, description)
    facts = planner_facts(description, settings, home)
    geometry = f"{description.name or 'robot'}_collision_spheres"
    collision: dict[str, Any] = {"geometry": geometry}
    if padding:
        collision["buffer_distance"] = dict.fromkeys(model.links, padding)
    document = {
        "format": "xrdf",
        "format_version": 1.0,
        "modifiers": [{"set_base_frame": facts.base_link}],
        "default_joint_positions": dict(zip(facts.joint_names, facts.default_positions, strict=True)),
        "cspace": {
            "joint_names": list(facts.joint_names),
            "acceleration_limits": [settings.acceleration_limit] * len(facts.joint_names),
            "jerk_limits": [settings.jerk_limit] * len(facts.joint_names),
        },
        "tool_frames": list(facts.tool_frames),
        "collision": collision,
        "self_collision": {
            "geometry": geometry,
            "ignore": ignore_entries(self_collision.ignored, model.links),
        },
        "geometry": {geometry: {"spheres": sphere_entries(model)}},
    }
    return write_yaml(document)


def model_from_xrdf(text: str, robot_name: str = "", source: str = "XRDF") -> SphereModel:
    """The spheres of an XRDF document: those of its geometry for collisions, else of its only geometry.

    Carries neither the robot's name nor the variant, d_avg and d_max (NaN) nor the content hash (it is computed
    from the spheres). Placeholders of negative radius are left out, `buffer_distance` is not added. Version 2,
    whose section for collisions has another name, is read as well.

    Raises:
        InvalidInputError: another format, no such geometry, or a sphere that makes no sense.
    """
    document = read_yaml(text, source)
    if document.get("format") != "xrdf":
        raise InvalidInputError(f"{source}: format", repr(document.get("format"))[:80], "'xrdf'")
    geometries = document.get("geometry")
    if not isinstance(geometries, dict) or not geometries:
        raise InvalidInputError(f"{source}: geometry", "nothing", "geometries by name")
    name = entry(document, "collision", "geometry") or entry(document, "world_collision", "geometry")
    if name is None and len(geometries) == 1:
        name = next(iter(geometries))
    if not isinstance(name, str) or name not in geometries:
        shown = ", ".join(str(known)[:40] for known in list(geometries)[:5])
        raise InvalidInputError(f"{source}: collision: geometry", repr(name)[:80], f"one of {shown}")
    return imported_model(robot_name, sphere_rows(entry(geometries, name, "spheres"), source), source)
