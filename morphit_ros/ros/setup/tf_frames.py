"""Frames of /tf and /tf_static as a tree, without tf2: what connects with what, and the latest poses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from morphit_ros.errors import MorphitError
from morphit_ros.geometry.transforms import Array, invert_transform
from morphit_ros.ros.core.conversions import matrix_from_transform


@dataclass
class FrameTree:
    """Child → its parent, and its pose there.

    Attributes:
        parents: child frame → parent frame.
        poses: child frame → (4, 4) ``T_parent_child``.
        doubled: children that two parents were said of.
        broken: what was no transform.
    """

    parents: dict[str, str] = field(default_factory=dict)
    poses: dict[str, Array] = field(default_factory=dict)
    doubled: dict[str, set[str]] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)

    def take(self, message: Any) -> None:
        """Add the transforms of a tf2_msgs/TFMessage."""
        for transform in message.transforms:
            child, parent = transform.child_frame_id.lstrip("/"), transform.header.frame_id.lstrip("/")
            try:
                pose = matrix_from_transform(transform.transform)
            except MorphitError as error:
                self.broken.append(f"{parent} → {child}: {error}")
                continue
            if self.parents.get(child, parent) != parent:
                self.doubled.setdefault(child, {self.parents[child]}).add(parent)
            self.parents[child], self.poses[child] = parent, pose

    def to_root(self, frame: str) -> tuple[str, Array]:
        """The root above a frame, and ``T_root_frame`` (4, 4)."""
        pose, seen = np.eye(4), {frame}
        while frame in self.parents:
            pose, frame = self.poses[frame] @ pose, self.parents[frame]
            if frame in seen:
                break
            seen.add(frame)
        return frame, pose

    def look_up(self, target: str, source: str) -> Array | None:
        """``T_target_source`` (4, 4), None where nothing connects them."""
        known = {*self.parents, *self.parents.values()}
        if target not in known or source not in known:
            return None
        (root_t, T_root_target), (root_s, T_root_source) = self.to_root(target), self.to_root(source)
        return invert_transform(T_root_target) @ T_root_source if root_t == root_s else None
