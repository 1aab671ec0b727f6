"""The morphing cover that a robot wears, as a part of its sphere model while it changes its shape."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

import numpy as np
from rclpy.callback_groups import CallbackGroup
from rclpy.node import Node
from std_msgs.msg import String

from morphit_interfaces.msg import CoverState
from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError, MorphitError
from morphit_ros.geometry.transforms import Array, make_transform, matrix_from_quat_xyzw
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.spheres.attach_request import MOST_SPHERES
from morphit_ros.spheres.adaptation import AdaptiveShape
from morphit_ros.spheres.objects.plates import COVER, PlateFollower, plate_corners, plate_spheres

_NO_TURN = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)


@dataclass(frozen=True)
class WornCoverConfig(Config):
    """Which link wears a morphing cover, and how its plates become spheres."""

    link: str = parameter("", "Link that wears the cover of cover/state, whose plates become spheres; empty: none")
    pose: tuple[float, ...] = parameter(
        _NO_TURN, "T_link_cover of the frame of cover/state: x, y, z [m], quaternion x, y, z, w", length=7
    )
    per_side: int = parameter(2, "Spheres along the side of a plate", minimum=1, maximum=8)
    thickness: float = parameter(0.005, "Of a plate [m]", minimum=0.0, maximum=0.2)
    tolerance: float = parameter(
        0.01, "The spheres are larger by this, and follow plates that moved farther [m]", minimum=1e-3, maximum=0.1
    )
    period: float = parameter(
        0.5, "Time between two changes, unless a plate is about to leave its spheres [s]", minimum=0.05, maximum=10.0
    )


class WornCover:
    """Follows a cover and puts its plates into the robot's shape.

    When its spheres change, and by how much they are larger than the plates, says `PlateFollower`. They stay where no
    state comes any more.

    Args:
        node: subscribes.
        config: which link, and how.
        shape: takes the plates.
        refuse: told why plates are not taken, once a period.
        group: of the callbacks.

    Raises:
        InvalidInputError: a pose that is none.
    """

    def __init__(
        self,
        node: Node,
        config: WornCoverConfig,
        shape: AdaptiveShape,
        refuse: Callable[[MorphitError], None],
        group: CallbackGroup,
    ) -> None:
        self._config, self._shape, self._refuse = config, shape, refuse
        self._T_link_cover = _transform(config.pose)
        self._pitch: float | None = None
        self._follower = PlateFollower(config.tolerance, config.period)
        self._refused = -np.inf
        if config.link:
            interfaces.COVER_DESCRIPTION.subscribe(node, self._on_description, group)
            interfaces.COVER_STATE.subscribe(node, self._on_state, group, depth=1)

    def _on_description(self, message: String) -> None:
        # Half a second, for the few robots that wear one.
        from morphit_ros.ros.cover.messages import cover_from_description

        try:
            cover, _, _ = cover_from_description(message.data)
            count = cover.node_count * self._config.per_side**2
            if count > MOST_SPHERES:
                raise InvalidInputError("spheres of the cover", count, f"at most {MOST_SPHERES}", "Lower per_side.")
        except MorphitError as error:
            self._refuse(error)
            return
        self._pitch = cover.pitch
        self._follower.forget()

    def _on_state(self, message: CoverState) -> None:
        now = monotonic()
        if self._pitch is None or self._shape.shape is None or now - self._refused < self._config.period:
            return
        try:
            self._follow(message, self._pitch, now)
        except MorphitError as error:
            self._refused = now
            self._refuse(error)

    def _follow(self, message: CoverState, pitch: float, now: float) -> None:
        config = self._config
        positions, rotations = np.array(message.positions), np.array(message.rotations)
        if not len(positions) or len(positions) % 3 or len(rotations) != 3 * len(positions):
            found = f"{len(positions)} positions, {len(rotations)} rotations"
            raise InvalidInputError(interfaces.COVER_STATE.name, found, "3 and 9 numbers a plate")
        plates = positions.reshape(-1, 3), rotations.reshape(-1, 3, 3)
        corners = plate_corners(*plates, pitch, config.thickness)
        margin = self._follower.margin(corners, now)
        if margin is None:
            return
        spheres = plate_spheres(*plates, pitch, config.per_side, config.thickness, margin)
        self._shape.wear(COVER, config.link, spheres, self._T_link_cover)
        self._follower.made(corners, margin, now)


def _transform(pose: tuple[float, ...]) -> Array:
    length = float(np.linalg.norm(pose[3:]))
    if not (np.isfinite(pose).all() and abs(length - 1.0) < 1e-3):
        raise InvalidInputError("cover.pose", list(pose), "seven finite numbers with a quaternion of length 1")
    return make_transform(matrix_from_quat_xyzw(pose[3:]), pose[:3])
