"""Bodies that move and obstacles that don't, or are driven."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, check_transform, matrix_from_quat_xyzw
from morphit_ros.neural.body import ContactBody
from morphit_ros.neural.contact.shapes import ContactShape, ContactSphere


@dataclass(frozen=True)
class RigidBody:
    """A body that moves: with points that touch shapes, or a shape that others' points touch, or both, or neither.

    Attributes:
        mass: [kg].
        inertia: (3, 3) about the centre of mass, in the body's axes [kg m²].
        contact: points in the body frame (origin at the centre of mass), or None.
        shape: in the body frame, or None.
        name: for pairs and parameters; empty for "body0", "body1", …
    """

    mass: float
    inertia: Array
    contact: ContactBody | None = None
    shape: ContactShape | None = None
    name: str = ""

    def __post_init__(self) -> None:
        inertia = np.array(self.inertia, dtype=np.float64)
        if not (np.isfinite(self.mass) and self.mass > 0.0):
            raise InvalidInputError("mass", self.mass, "a positive number [kg]")
        if (
            inertia.shape != (3, 3)
            or not np.isfinite(inertia).all()
            or np.linalg.eigvalsh(inertia)[0] <= 0.0
            or (np.abs(inertia - inertia.T).max() > 1e-6 * np.abs(inertia).max())
        ):
            raise InvalidInputError("inertia", inertia.tolist(), "a symmetric positive definite (3, 3) matrix [kg m²]")
        object.__setattr__(self, "inertia", inertia)

    @classmethod
    def from_contact_body(cls, body: ContactBody, shape: ContactShape | None = None, name: str = "") -> RigidBody:
        """With mass and inertia of its points' body."""
        return cls(body.mass, body.inertia, body, shape, name)

    @classmethod
    def ball(cls, radius: float, mass: float, name: str = "") -> RigidBody:
        """A solid ball [m, kg] that points of other bodies touch, such as a spherical end effector.

        It touches no obstacle itself: it has no points.
        """
        return cls(mass, np.eye(3) * (0.4 * mass * radius**2), None, ContactSphere(radius), name)


@dataclass(frozen=True)
class Obstacle:
    """A shape in the world, at rest or driven.

    Attributes:
        shape: what it is.
        T_world_shape: (4, 4), where it rests.
        positions: (F, 3) of its origin at the times 0, h, 2 h, … [m], None for one at rest. After the last it stays.
        quats_xyzw: (F, 4) likewise, None to keep the orientation of T_world_shape.
        name: for pairs and parameters; empty for "obstacle0", …
    """

    shape: ContactShape
    T_world_shape: Array = field(default_factory=lambda: np.eye(4))
    positions: Array | None = None
    quats_xyzw: Array | None = None
    name: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "T_world_shape", check_transform(self.T_world_shape, "T_world_shape"))
        for name, width in (("positions", 3), ("quats_xyzw", 4)):
            value = getattr(self, name)
            if value is None:
                continue
            array = np.array(value, dtype=np.float64)
            if array.ndim != 2 or array.shape[1] != width or len(array) == 0 or not np.isfinite(array).all():
                raise InvalidInputError(name, f"shape {array.shape}", f"finite numbers of shape (F, {width})")
            object.__setattr__(self, name, array)
        if self.quats_xyzw is not None and (self.positions is None or len(self.positions) != len(self.quats_xyzw)):
            raise InvalidInputError("quats_xyzw", f"{len(self.quats_xyzw)} rows", "as many rows as positions")

    def frames(self, step: float) -> tuple[Array, Array]:
        """Poses (F, 12), rotation by rows and origin, and twists (F, 6) over each following step, in the world."""
        rotation, origin = self.T_world_shape[:3, :3], self.T_world_shape[:3, 3]
        positions = origin[None] if self.positions is None else self.positions
        if self.quats_xyzw is None:
            rotations = np.broadcast_to(rotation, (len(positions), 3, 3))
        else:
            rotations = np.array([matrix_from_quat_xyzw(quat) for quat in self.quats_xyzw])
        twists = np.zeros((len(positions), 6))
        twists[:-1, :3] = np.diff(positions, axis=0) / step
        if self.quats_xyzw is not None and len(positions) > 1:
            from scipy.spatial.transform import Rotation

            turns = rotations[1:] @ rotations[:-1].transpose(0, 2, 1)
            twists[:-1, 3:] = Rotation.from_matrix(turns).as_rotvec() / step
        return np.concatenate([rotations.reshape(-1, 9), positions], axis=1), twists
