"""A robot as data: description files, joints, gripper mount, home, place. Read from config/robots."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.documents import read_yaml_file
from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.transforms import Array, invert_transform, make_transform, matrix_from_rpy
from morphit_ros.resources import resource
from morphit_ros.robot.finger_positions import MIMIC_ERROR, FingerPositions

if TYPE_CHECKING:
    from morphit_ros.robot.description import RobotDescription
    from morphit_ros.robot.kinematics import KinematicModel

_REQUIRED = (
    "description", "base_link", "arm_joints", "home", "acceleration_limits", "gripper", "tip_link", "finger_joints",
    "touch_links",
)  # fmt: skip
_OPTIONAL = (
    "name", "semantic_description", "tip_to_gripper", "finger_positions", "moveit", "workcell", "driver_state",
)  # fmt: skip
# Names of a planning group and of controllers that a file need not repeat.
MOVEIT_NAMES = MappingProxyType(
    {
        "planning_group": "arm",
        "arm_controller": "arm_controller",
        "gripper_action": "gripper_controller/gripper_cmd",
        # Of a suction cup: a std_srvs/SetBool, as drivers of vacuum grippers and Gazebo's offer.
        "vacuum_service": "vacuum_gripper/switch",
    }
)
# What a driver may publish of its robot, see `morphit_ros.ros.execution.driver_state`.
DRIVER_STATES = ("safety_mode", "robot_mode", "program_running", "speed_scaling", "franka_state")
# An arm's length or a room's: more is a file in millimetres.
_FARTHEST = 100.0


@dataclass(frozen=True)
class RobotConfiguration:
    """What the code needs to know about one arm with one gripper.

    Attributes:
        name: key of its file in config/robots, by default the file's own.
        description: URI of the URDF or xacro (package://, file:// or a path).
        semantic_description: URI of the SRDF, empty if there is none.
        base_link: root frame of motion planning.
        arm_joints: names, in the order of `home` and of the acceleration limits.
        home: (J,) [rad].
        acceleration_limits: (J,) [rad/s²].
        gripper: name of its gripper in config/grippers or of its cup in config/suction_cups, or a YAML file.
        tip_link: link that carries the gripper.
        T_tip_gripper: (4, 4), gripper frame in the tip link.
        finger_joints: joints whose positions [m] add up to the aperture, or that the table `finger_positions` is of.
        touch_links: links that may touch a held object.
        moveit: names of MoveIt's planning group and of the controllers, those of `MOVEIT_NAMES` where none are given.
        base_position: where the base stands in the simulated workcell (z up, table top at z = 0) [m].
        base_yaw: heading of the base there [rad].
        driver_state: some of `DRIVER_STATES` → topic on which the robot's driver publishes it.
        finger_positions: of fingers that turn; None: they slide.
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
    base_position: tuple[float, ...] = field(default=(0.0, 0.0, 0.0))
    base_yaw: float = 0.0
    driver_state: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    finger_positions: FingerPositions | None = None

    @classmethod
    def load(cls, name_or_path: str | Path) -> RobotConfiguration:
        """Read a robot by its name in config/robots or from a YAML file.

        Paths in the file without a scheme are relative to it. `description` may be a list, of which the first entry is
        taken that has all it needs: a path or URI needs nothing, ``{urdf: …, needs: […]}`` ament packages by name or
        files by absolute path, which may begin with an environment variable.

        Raises:
            ResourceNotFoundError: no such robot or gripper; lists the known ones.
            InvalidInputError: a key is missing or unknown, or a value is not what it must be; names file, key, value
                and bound.
        """
        path = Path(name_or_path)
        if path.suffix not in (".yaml", ".yml"):
            path = resource(f"config/robots/{name_or_path}.yaml")
        data = read_yaml_file(path, "Give a name in config/robots or a YAML file.")
        return cls(**_Checked(path, data).fields())

    def check_description(self, description: RobotDescription) -> None:
        """Compare with the robot's description.

        Raises:
            InvalidInputError: a link or joint that the description lacks, a finger that does not slide and has no
                table, or one that differs from the description, a home outside the limits, or a tip that the arm does
                not carry; names file, value and bound.
        """
        where = f"robot {self.name}"
        for key, links in (
            ("base_link", (self.base_link,)),
            ("tip_link", (self.tip_link,)),
            ("touch_links", self.touch_links),
        ):
            for link in links:
                if link not in description.links:
                    raise InvalidInputError(
                        f"{where}: {key}", repr(link), _one_of("a link", description.name, description.links)
                    )
        for key, joints, kinds in (
            ("arm_joints", self.arm_joints, ("revolute", "continuous", "prismatic")),
            (
                "finger_joints", self.finger_joints,
                ("prismatic",) if self.finger_positions is None else ("revolute", "continuous", "prismatic"),
            ),
        ):  # fmt: skip
            for name in joints:
                if name not in description.joints:
                    raise InvalidInputError(
                        f"{where}: {key}", repr(name), _one_of("a joint", description.name, description.joints)
                    )
                kind = description.joints[name].kind
                if kind not in kinds:
                    remedy = "Fingers that turn need the table finger_positions." if key == "finger_joints" else ""
                    raise InvalidInputError(
                        f"{where}: {key}", f"'{name}', which is {kind}", f"a {' or '.join(kinds)} joint", remedy
                    )
        self._check_fingers(description)
        for name, value in zip(self.arm_joints, self.home.tolist(), strict=True):
            joint = description.joints[name]
            if not joint.lower <= value <= joint.upper:
                bound = f"in the joint's limits [{joint.lower:g}, {joint.upper:g}]"
                raise InvalidInputError(f"{where}: home of '{name}'", value, bound)
        carried, joint_above = set(), description.parent_joint(self.tip_link)
        while joint_above is not None:
            carried.add(joint_above.name)
            joint_above = description.parent_joint(joint_above.parent)
        idle = [name for name in self.arm_joints if name not in carried]
        if idle:
            raise InvalidInputError(f"{where}: tip_link", repr(self.tip_link), f"a link moved by {', '.join(idle)}")

    def _check_fingers(self, description: RobotDescription) -> None:
        """Whether the table of finger positions keeps the description's limits and its mimic joints."""
        table = self.finger_positions
        if table is None:
            return
        where = f"robot {self.name}: finger_positions"
        for column, name in zip(table.positions.T, self.finger_joints, strict=True):
            joint = description.joints[name]
            if column.min() < joint.lower - MIMIC_ERROR or column.max() > joint.upper + MIMIC_ERROR:
                bound = f"in the joint's limits [{joint.lower:g}, {joint.upper:g}]"
                raise InvalidInputError(f"{where} of '{name}'", [column.min(), column.max()], bound)
            if joint.mimic is not None and joint.mimic.joint in self.finger_joints:
                leader = table.positions[:, self.finger_joints.index(joint.mimic.joint)]
                wanted = joint.mimic.multiplier * leader + joint.mimic.offset
                if np.abs(wanted - column).max() > MIMIC_ERROR:
                    bound = f"{joint.mimic.multiplier:g} times '{joint.mimic.joint}' plus {joint.mimic.offset:g}"
                    raise InvalidInputError(f"{where} of '{name}'", column.tolist(), bound)

    def finger_state(self, aperture: float) -> dict[str, float]:
        """Position of each finger joint at an opening [m]; beyond a table that of its end."""
        if self.finger_positions is not None:
            return dict(zip(self.finger_joints, self.finger_positions.at(aperture).tolist(), strict=True))
        return dict.fromkeys(self.finger_joints, aperture / len(self.finger_joints)) if self.finger_joints else {}

    def finger_shares(self, positions: ArrayLike) -> Array:
        """What each finger joint at positions (F,) has of the opening (F,) [m]: their sum is the opening."""
        if self.finger_positions is not None:
            return self.finger_positions.shares(positions)
        return np.asarray(positions, dtype=np.float64)

    def aperture(self, positions: Mapping[str, float]) -> float | None:
        """Opening between the pads [m]; None where no finger joint is among the positions.

        Joints that are left out, as by drivers of hands with one motor, do what the others do.
        """
        known = [name for name in self.finger_joints if name in positions]
        if not known:
            return None
        if self.finger_positions is None:
            return float(np.mean([positions[name] for name in known])) * len(self.finger_joints)
        ends = self.finger_state(0.0)
        shares = self.finger_shares([positions.get(name, ends[name]) for name in self.finger_joints])
        return float(np.mean([shares[self.finger_joints.index(name)] for name in known])) * len(self.finger_joints)

    def finger_forces(self, positions: ArrayLike, efforts: ArrayLike) -> Array:
        """Force (F,) that each finger presses with [N], without its sign, by efforts (F,) of the joints [N or N m]."""
        strengths = np.abs(np.asarray(efforts, dtype=np.float64))
        if self.finger_positions is not None:
            strengths = strengths / np.maximum(np.abs(self.finger_positions.rates(positions)), 1e-6)
        return strengths

    def gripper_pose(self, kinematics: KinematicModel, positions: Mapping[str, float]) -> Array:
        """``T_base_gripper`` (4, 4) of arm joint positions [rad].

        Raises:
            InvalidInputError: a joint of the robot's description has no position.
        """
        closed = {**dict.fromkeys(self.finger_joints, 0.0), **positions}
        T_root_base, T_root_tip = (kinematics.link_pose(closed, link) for link in (self.base_link, self.tip_link))
        return np.asarray(invert_transform(T_root_base) @ T_root_tip @ self.T_tip_gripper)


class _Checked:
    """The content of a robot's file, checked key by key."""

    def __init__(self, path: Path, data: Any) -> None:
        if not isinstance(data, dict):
            raise InvalidInputError(path.name, type(data).__name__, f"the keys {', '.join(_REQUIRED)}")
        missing = [key for key in _REQUIRED if key not in data]
        unknown = sorted(str(key) for key in data if key not in (*_REQUIRED, *_OPTIONAL))
        if missing or unknown:
            found = "; ".join(
                f"{word} {', '.join(keys)}" for word, keys in (("missing", missing), ("unknown", unknown)) if keys
            )
            raise InvalidInputError(
                f"{path.name}: keys", found, f"{', '.join(_REQUIRED)}; may have {', '.join(_OPTIONAL)}"
            )
        self._path, self._data = path, data

    def fields(self) -> dict[str, Any]:
        """Arguments of `RobotConfiguration`."""
        data = self._data
        joints = self._names("arm_joints", at_least=1)
        zeros = [0.0, 0.0, 0.0]
        mount = {"xyz": zeros, "rpy": zeros}
        if "tip_to_gripper" in data:
            mount = self._group("tip_to_gripper", ("xyz", "rpy"))
        place = self._group("workcell", ("base_position", "base_yaw")) if "workcell" in data else {}
        accelerations = self._numbers("acceleration_limits", data["acceleration_limits"], len(joints))
        if (accelerations <= 0.0).any():
            raise self._error("acceleration_limits", accelerations.tolist(), "positive numbers [rad/s²]")
        position = self._numbers("workcell.base_position", place.get("base_position", zeros), 3)
        return {
            "description": self._description(),
            "semantic_description": self._located(
                self._text("semantic_description", data.get("semantic_description", ""), True)
            ),
            "arm_joints": joints,
            "home": self._numbers("home", data["home"], len(joints)),
            "acceleration_limits": accelerations,
            "gripper": self._gripper(),
            "T_tip_gripper": make_transform(
                matrix_from_rpy(self._numbers("tip_to_gripper.rpy", mount["rpy"], 3)),
                self._numbers("tip_to_gripper.xyz", mount["xyz"], 3),
            ),
            "finger_joints": self._names("finger_joints", at_least=0),
            "finger_positions": self._finger_positions(),
            "touch_links": self._names("touch_links", at_least=0),
            "moveit": {**MOVEIT_NAMES, **(self._texts("moveit") if "moveit" in data else {})},
            "driver_state": self._driver_state(),
            "base_position": tuple(position.tolist()),
            "base_yaw": float(self._numbers("workcell.base_yaw", [place.get("base_yaw", 0.0)], 1)[0]),
            "name": self._text("name", data.get("name", self._path.stem)),
            **{key: self._text(key, data[key]) for key in ("base_link", "tip_link")},
        }

    def _error(self, key: str, value: object, bound: str, remedy: str = "") -> InvalidInputError:
        return InvalidInputError(f"{self._path.name}: {key}", value, bound, remedy)

    def _text(self, key: str, value: Any, may_be_empty: bool = False) -> str:
        if not isinstance(value, str) or not (value.strip() or may_be_empty):
            raise self._error(key, repr(value), "a text" if may_be_empty else "a text that is not empty")
        return value

    def _names(self, key: str, at_least: int) -> tuple[str, ...]:
        value = self._data[key]
        if (
            not isinstance(value, list)
            or len(value) < at_least
            or not all(isinstance(name, str) and name for name in value)
        ):
            raise self._error(key, repr(value), "a list of names")
        if len(set(value)) != len(value):
            raise self._error(key, repr(value), "each name once")
        return tuple(value)

    def _numbers(self, key: str, value: Any, count: int) -> Array:
        numbers = isinstance(value, list) and all(isinstance(x, int | float) and not isinstance(x, bool) for x in value)
        if not numbers or len(value) != count or not all(math.isfinite(x) and abs(x) <= _FARTHEST for x in value):
            raise self._error(key, repr(value), f"{count} finite number{'s' if count > 1 else ''} up to {_FARTHEST:g}")
        return np.array(value, dtype=np.float64)

    def _group(self, key: str, names: Sequence[str]) -> dict[str, Any]:
        value = self._data[key]
        if not isinstance(value, dict) or set(value) != set(names):
            raise self._error(key, repr(value), f"exactly the keys {', '.join(names)}")
        return value

    def _texts(self, key: str) -> dict[str, str]:
        value = self._data[key]
        if not isinstance(value, dict) or not all(isinstance(text, str) for pair in value.items() for text in pair):
            raise self._error(key, repr(value), "names by key")
        return value

    def _finger_positions(self) -> FingerPositions | None:
        if "finger_positions" not in self._data:
            return None
        value, count = self._data["finger_positions"], len(self._data["finger_joints"])
        if not isinstance(value, list) or count == 0:
            bound = "rows of an opening [m] and a position of each of finger_joints"
            raise self._error("finger_positions", repr(value), bound)
        rows = np.array([self._numbers(f"finger_positions[{k}]", row, 1 + count) for k, row in enumerate(value)])
        rows = rows.reshape(-1, 1 + count)
        try:
            return FingerPositions(rows[:, 0], rows[:, 1:])
        except InvalidInputError as error:
            raise self._error(error.name, error.value, error.bound, error.remedy) from None

    def _driver_state(self) -> dict[str, str]:
        topics = self._texts("driver_state") if "driver_state" in self._data else {}
        if not set(topics) <= set(DRIVER_STATES) or not all(topics.values()):
            raise self._error("driver_state", repr(topics), f"topics by some of {', '.join(DRIVER_STATES)}")
        return topics

    def _located(self, text: str) -> str:
        """A URI as it is; a path made absolute, beginning at the file's folder."""
        if not text or "://" in text or Path(text).expanduser().is_absolute():
            return text
        return str((self._path.parent / text).resolve())

    def _gripper(self) -> str:
        text = self._text("gripper", self._data["gripper"])
        try:
            if not text.endswith((".yaml", ".yml")):
                try:
                    resource(f"config/suction_cups/{text}.yaml")
                except ResourceNotFoundError:
                    resource(f"config/grippers/{text}.yaml")
                return text
            located = self._located(text)
            if not Path(located).expanduser().is_file():
                raise ResourceNotFoundError(located, [])
        except ResourceNotFoundError as error:
            raise ResourceNotFoundError(f"{self._path.name}: gripper {text}", error.searched, error.remedy) from None
        return located

    def _description(self) -> str:
        value = self._data["description"]
        entries = value if isinstance(value, list) else [value]
        bound = "a path or URI, or a list of them and of {urdf: …, needs: […]}"
        for entry in entries:
            if isinstance(entry, dict) and set(entry) == {"urdf", "needs"} and isinstance(entry["needs"], list):
                if all(_is_there(str(need)) for need in entry["needs"]):
                    return self._located(self._text("description.urdf", entry["urdf"]))
            elif isinstance(entry, str) and entry.strip():
                return self._located(entry)
            else:
                raise self._error("description", repr(entry), bound)
        raise self._error("description", repr(value), bound, "None of them has all that it needs here.")


def _is_there(need: str) -> bool:
    """Whether an ament package is installed (xacro finds no other ones), or a file exists."""
    if "/" in need:
        path = Path(os.path.expandvars(need))
        return path.is_absolute() and path.is_file()
    prefixes = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    return any((Path(prefix) / "share" / need / "package.xml").is_file() for prefix in prefixes if prefix)


def _one_of(what: str, robot: str, names: Mapping[str, object]) -> str:
    return f"{what} of '{robot}': {', '.join(names)}"
