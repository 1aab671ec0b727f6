"""Torques with which motors hold a cover at rest against the weight of its nodes.

Passive joints bear forces, but no torques. At rest no motion of the closed cover does work: with a basis of the
motions, velocities V and motor rates A over it, forces f on the nodes and motor torques tau,

    A^T tau + V^T f = 0

for every column of the basis (virtual power). A is square, as for the controller. Fixed nodes bear their own weight.
Neither friction nor the weight of motors on the joints is counted; put a motor's mass into that of its nodes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.configuration import Config, parameter
from morphit_ros.cover.actuation.motors import motor_rates
from morphit_ros.cover.kinematics.null_space import NullSpaceSolver
from morphit_ros.cover.model import Cover
from morphit_ros.cover.state import CoverState, check_state, fill_velocities
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array

STANDARD_GRAVITY = 9.80665


@dataclass(frozen=True)
class LoadConfig(Config):
    """What hangs on the motors, and what they can hold."""

    node_mass: float = parameter(0.005, "Mass of a node [kg]", minimum=0.0, maximum=1e3)
    motor_torque: float = parameter(0.00325, "What a motor can hold, as the paper's [N m]", minimum=1e-9, maximum=1e6)


@dataclass(frozen=True)
class HoldingTorques:
    """What gravity asks of the motors of a cover at rest.

    Attributes:
        torques: (M,) of each motor [N m]: with its sign in a given gravity; over all directions of gravity, the
            greatest that it has in any.
        directions: (M, 3) unit vectors, world frame: the gravity in which each motor has it.
    """

    torques: Array
    directions: Array

    @property
    def worst(self) -> int:
        """The motor that holds most."""
        return int(np.abs(self.torques).argmax())

    @property
    def greatest(self) -> float:
        """What it holds [N m]."""
        return float(np.abs(self.torques).max())

    def exceeding(self, limit: float) -> int:
        """How many motors hold more than `limit` [N m]."""
        return int((np.abs(self.torques) > limit).sum())


def holding_torques(
    cover: Cover, state: CoverState, masses: ArrayLike = 0.005, gravity: ArrayLike | None = None
) -> HoldingTorques:
    """The torques that hold a configuration.

    Args:
        cover: with as many motors as degrees of freedom.
        state: joints closed.
        masses: of every node, or one for all [kg].
        gravity: (3,) its direction in the world frame, of any length; None: for each motor the worst direction.

    Raises:
        InvalidInputError: motors that are missing, a state of another cover, masses or a direction that cannot be, or a
            configuration that motors don't hold at all (more motions than motors, or motors that don't span them).
    """
    if len(cover.motors) != cover.expected_dof:
        raise InvalidInputError(
            "motors", f"{len(cover.motors)} motors", f"{cover.expected_dof}, one a degree of freedom",
            "Place them with 'morphit cover place'.",
        )  # fmt: skip
    state = check_state(cover, state.rotations, state.origin)
    weights = np.asarray(masses, dtype=np.float64)
    if weights.shape not in ((), (cover.node_count,)) or not (np.isfinite(weights).all() and (weights >= 0.0).all()):
        raise InvalidInputError(
            "masses", f"shape {weights.shape}", f"one, or {cover.node_count} masses [kg], not below 0"
        )
    basis = NullSpaceSolver(cover).basis(state.rotations)
    rates = motor_rates(cover, state.rotations, basis)
    if basis.shape[1] != len(cover.motors) or not np.linalg.cond(rates) < 1e12:
        raise InvalidInputError(
            "state", f"{basis.shape[1]} motions and {len(cover.motors)} motors that do not span them",
            "a configuration that its motors hold", "Place motors for this shape with 'morphit cover place'.",
        )  # fmt: skip
    loads = weight_powers(cover, state, basis, np.broadcast_to(weights, cover.node_count))
    by_direction = -np.linalg.solve(rates.T, loads)
    if gravity is None:
        torques = np.linalg.norm(by_direction, axis=1)
        # Motors without a load have no worst direction: any.
        directions = np.where(
            torques[:, None] > 0.0, by_direction / np.maximum(torques, 1e-300)[:, None], (0.0, 0.0, -1.0)
        )
        return HoldingTorques(torques, directions)
    direction = np.asarray(gravity, dtype=np.float64)
    if direction.shape != (3,) or not np.isfinite(direction).all() or not np.linalg.norm(direction) > 0.0:
        raise InvalidInputError("gravity", direction.tolist(), "three finite numbers, not all zero, such as 0 0 -1")
    direction = direction / np.linalg.norm(direction)
    return HoldingTorques(by_direction @ direction, np.tile(direction, (len(cover.motors), 1)))


def weight_powers(cover: Cover, state: CoverState, basis: Array, masses: Array) -> Array:
    """(D, 3) power of the nodes' weights in each motion of a basis (3 N, D), for gravity along x, y and z [W s/rad].

    Args:
        masses: (N,) of the nodes [kg].
    """
    motions = np.ascontiguousarray(basis)
    velocities = np.empty_like(motions)
    fill_velocities(state.rotations, motions, cover.father, cover.rows, cover.cols, cover.pitch, velocities)
    by_node = velocities.reshape(cover.node_count, 3, -1)
    return np.asarray(STANDARD_GRAVITY * np.einsum("n,nad->da", masses, by_node))
