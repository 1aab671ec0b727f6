"""Which cover a node is about: a case of config/cover, a file, or rows and columns on a bowl, by parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from morphit_ros.configuration import Config, parameter
from morphit_ros.cover.actuation.placement import place_motors
from morphit_ros.cover.cases import CylinderBody, load_case
from morphit_ros.cover.control.controller import ControllerConfig
from morphit_ros.cover.files import load_cover, moved_to_base
from morphit_ros.cover.goals.targets import HeightTarget, SurfaceTarget
from morphit_ros.cover.kinematics.start import lay_on_surface
from morphit_ros.cover.model import DEFAULT_PITCH, Cover
from morphit_ros.cover.state import CoverState
from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import make_transform, matrix_from_quat_xyzw

# From this many nodes on motors are searched from one start: four take 10 s at 20 x 20.
_LARGE = 100


@dataclass(frozen=True)
class CoverModelConfig(Config):
    """The cover. `case` and `cover_file` exclude each other; without either rows and columns count."""

    case: str = parameter("", "Case of config/cover, such as 8x8, or a YAML file like those")
    cover_file: str = parameter("", "JSON file with cover, motors and start configuration (morphit cover place)")
    rows: int = parameter(8, "Rows of nodes, without case and file", minimum=1, maximum=100)
    cols: int = parameter(8, "Columns of nodes, without case and file", minimum=1, maximum=100)
    pitch: float = parameter(DEFAULT_PITCH, "Distance of neighbouring nodes [m]", minimum=1e-4, maximum=10.0)
    fixed_nodes: tuple[int, ...] = parameter((1,), "Nodes that don't move, from 1; the first is the father", minimum=1)
    start_surface: str = parameter(
        "", "Start configuration: z = f(x, y) from the father on [m]; empty: a bowl that suits the size"
    )
    base: tuple[float, ...] = parameter(
        (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0), "Pose of the father in the world: x, y, z [m], quaternion x, y, z, w",
        length=7,
    )  # fmt: skip
    cover_frame: str = parameter("world", "The cover's world frame, in which targets are given")


@dataclass(frozen=True)
class LoadedCover:
    """A cover, ready to be moved.

    Attributes:
        cover, state: with motors; the start configuration.
        controller: what the case asks of the controller; the defaults without a case.
        target: of the case, or None.
        name: for people.
        body: what it lies on, of the case, or None.
    """

    cover: Cover
    state: CoverState
    controller: dict[str, Any]
    target: SurfaceTarget | None
    name: str
    body: CylinderBody | None = None


def load_model(config: CoverModelConfig) -> LoadedCover:
    """The cover of the parameters.

    Raises:
        InvalidInputError, ResourceNotFoundError: parameters that make no cover, or no such case or file.
    """
    if config.case and config.cover_file:
        raise InvalidInputError("case, cover_file", (config.case, config.cover_file), "at most one of them")
    if config.case:
        case = load_case(config.case)
        defaults = ControllerConfig().to_flat()
        asked = {name: value for name, value in case.controller.to_flat().items() if value != defaults[name]}
        return LoadedCover(case.cover, case.state, asked, case.target, case.name, case.body)
    if config.cover_file:
        cover, state = load_cover(config.cover_file)
        if not len(cover.motors):
            cover = cover.with_motors(_placed(cover, state))
        return LoadedCover(cover, state, {}, None, cover.name)
    cover = Cover(
        config.rows, config.cols, config.pitch, tuple(node - 1 for node in config.fixed_nodes),
        name=f"{config.rows}x{config.cols}",
    )  # fmt: skip
    state = lay_on_surface(cover, HeightTarget(config.start_surface or bowl(cover)))
    cover = cover.with_motors(_placed(cover, state))
    base = make_transform(matrix_from_quat_xyzw(config.base[3:]), config.base[:3])
    return LoadedCover(*moved_to_base(cover, state, base), {}, None, cover.name)


def bowl(cover: Cover) -> str:
    """A start surface: curved as the paper's, whose edges slope less the larger the cover is."""
    # The paper's 3 x 3, 8 x 8 and 20 x 20 covers begin with 7, 1.2 and 0.4 times the square of the distance.
    reach = cover.pitch * max(cover.rows, cover.cols)
    return f"-{min(7.0, 0.45 / reach):.6g}*(x**2 + y**2)"


def _placed(cover: Cover, state: CoverState) -> np.ndarray:
    placed = place_motors(cover, [state], seed=0, starts=1 if cover.node_count > _LARGE else 4)
    if not placed.spans:
        raise InvalidInputError(
            "motors", "no set that spans the motions", "a start configuration that is not singular",
            "Give another start_surface.",
        )  # fmt: skip
    return placed.motors
