"""A robot as data: description files, joints, gripper mount, home. Read from config/robots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, make_transform, matrix_from_rpy
from morphit_ros.resources import resource


@dataclass(frozen=True)
class RobotConfiguration:
    """What the code needs to know about one arm with one gripper.

    Attributes:
        name: key of its file in config/robots.
        description: URI of the URDF or xacro (package://, file:// or a path).
        semantic_description: URI of the SRDF, empty if there is none.
        base_link: root frame of motion planning.
        arm_joints: names, in the order of `home` and of the acceleration limits.
        home: (J,) [rad].
        acceleration_limits: (J,) [rad/s²].
        gripper: name of its gripper in config/grippers.
        tip_link: link that carries the gripper.
        T_tip_gripper: (4, 4), gripper frame in the tip link.
        finger_joints: joints whose positions [m] add up to the aperture.
        touch_links: links that may touch a held object.
        moveit: names used by the MoveIt backend.
    """

    name: str
    description: str
    semantic_description: str
    base_link: str
    arm_joints: tuple[str, ...]
    home: Array
    acceleration_limits: Array
    gripper: str
    tip_link: str
    T_tip_gripper: Array
    finger_joints: tuple[str, ...]
    touch_links: tuple[str, ...]
    moveit: Mapping[str, str]

    @classmethod
    def load(cls, name_or_path: str | Path) -> RobotConfiguration:
        """Read a robot by its name in config/robots or from a YAML file.

        Raises:
            ResourceNotFoundError: no such robot; lists the known ones.
            InvalidInputError: a key is missing or unknown, or lengths differ.
        """
        import yaml

        path = Path(name_or_path)
        if path.suffix not in (".yaml", ".yml"):
            path = resource(f"config/robots/{name_or_path}.yaml")
        data: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
        keys = (set(cls.__dataclass_fields__) - {"T_tip_gripper"}) | {"tip_to_gripper"}
        if not isinstance(data, dict) or set(data) != keys:
            found = sorted(set(data) ^ keys) if isinstance(data, dict) else type(data).__name__
            raise InvalidInputError(path.name, f"missing or unknown {found}", f"exactly the keys {sorted(keys)}")
        joints = tuple(data["arm_joints"])
        for key in ("home", "acceleration_limits"):
            data[key] = np.array(data[key], dtype=np.float64)
            if data[key].shape != (len(joints),):
                bound = f"one number for each of the {len(joints)} arm_joints"
                raise InvalidInputError(f"{path.name}: {key}", f"shape {data[key].shape}", bound)
        mount = data.pop("tip_to_gripper")
        data["T_tip_gripper"] = make_transform(matrix_from_rpy(mount["rpy"]), mount["xyz"])
        for key in ("arm_joints", "finger_joints", "touch_links"):
            data[key] = tuple(data[key])
        return cls(**data)
