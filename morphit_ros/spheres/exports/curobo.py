"""cuRobo's robot configuration in YAML, of both of its versions; and back.

Format: "Configuring a New Robot" and "Robot Self-Collision" of the cuRobo documentation: below robot_cfg /
kinematics the keys of its template. cuRobo refuses keys that it does not know; since version 2 of the format (2026)
`tool_frames` stands for `ee_link` and `link_names`, and `default_joint_position` for `retract_config`. Joint positions'
and velocities' limits stay in the URDF, which cuRobo reads.
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


def curobo_from_model(
    model: SphereModel,
    description: RobotDescription,
    self_collision: SelfCollisionMatrix,
    config: MotionPlannerConfig | None = None,
    home: Mapping[str, float] | None = None,
    padding: float = 0.0,
    *,
    version: int = 2,
) -> str:
    """A robot configuration for cuRobo.

    Args:
        model: the robot as spheres.
        description: the robot.
        self_collision: its ignored pairs become `self_collision_ignore`.
        config: what is in no URDF.
        home: default position by joint [rad or m].
        padding: `collision_sphere_buffer` [m]; the radii stay as they are.
        version: of the format: 2, or 1 for cuRobo up to 0.7.

    Raises:
        InvalidInputError: an unknown link, or a padding that makes a radius vanish.
    """
    settings = config or MotionPlannerConfig()
    check_padding(model, padding)
    check_links(model, description)
    facts = planner_facts(description, settings, home)
    ones = [1.0] * len(facts.joint_names)
    tools: dict[str, Any]
    if version == 1:
        position = "retract_config"
        link_names = list(facts.tool_frames) if len(facts.tool_frames) > 1 else None
        tools = {"ee_link": facts.tool_frames[0], "link_names": link_names}
    else:
        position, tools = "default_joint_position", {"tool_frames": list(facts.tool_frames)}
    kinematics = {
        "urdf_path": settings.urdf_path or f"{description.name}.urdf",
        "asset_root_path": "",
        "base_link": facts.base_link,
        **tools,
        "lock_joints": None,
        "extra_links": None,
        "collision_link_names": list(model.links),
        "collision_spheres": sphere_entries(model),
        "collision_sphere_buffer": padding,
        "extra_collision_spheres": {},
        "self_collision_ignore": ignore_entries(self_collision.ignored, model.links),
        "self_collision_buffer": dict.fromkeys(model.links, 0.0),
        "use_global_cumul": True,
        "mesh_link_names": list(model.links),
        "cspace": {
            "joint_names": list(facts.joint_names),
            position: list(facts.default_positions),
            "null_space_weight": ones,
            "cspace_distance_weight": list(ones),
            "max_acceleration": settings.acceleration_limit,
            "max_jerk": settings.jerk_limit,
        },
    }
    head = {} if version == 1 else {"version": 2.0}
    return write_yaml({"robot_cfg": {**head, "kinematics": kinematics}})


def model_from_curobo(text: str, robot_name: str = "", source: str = "cuRobo configuration") -> SphereModel:
    """The spheres of a cuRobo robot configuration, or of a file of spheres that such a configuration names.

    Carries neither the robot's name nor the variant, d_avg and d_max (NaN) nor the content hash (it is computed
    from the spheres). Placeholders of negative radius are left out, `collision_sphere_buffer` is not added.

    Raises:
        InvalidInputError: other YAML, spheres in a file of their own, or a sphere that makes no sense.
    """
    document = read_yaml(text, source)
    spheres = entry(document, "robot_cfg", "kinematics", "collision_spheres")
    if spheres is None:
        spheres = entry(document, "kinematics", "collision_spheres") or document.get("collision_spheres")
    if spheres is None:
        raise InvalidInputError(source, "no robot_cfg/kinematics/collision_spheres", "a cuRobo robot configuration")
    if isinstance(spheres, str):
        remedy = "Read that file."
        raise InvalidInputError(source, f"spheres in a file of their own ('{spheres[:80]}')", "spheres", remedy)
    return imported_model(robot_name, sphere_rows(spheres, source), source)
