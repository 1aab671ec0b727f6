"""Cases as data, config/cover/*.yaml: the paper's four, and what it names as open."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from morphit_ros.cover.actuation.placement import place_motors
from morphit_ros.cover.control.controller import ControllerConfig
from morphit_ros.cover.files import load_cover, moved_to_base
from morphit_ros.cover.goals.surfaces import HeightMapTarget, MeshTarget, plan_passage
from morphit_ros.cover.goals.targets import HeightTarget, ParametricTarget, SurfaceTarget, grid_parameters
from morphit_ros.cover.kinematics.start import lay_on_surface, roll
from morphit_ros.cover.model import DEFAULT_RANGE_OF_MOTION, Cover
from morphit_ros.cover.state import CoverState
from morphit_ros.documents import read_yaml_file
from morphit_ros.errors import InvalidInputError, MorphitError, ResourceNotFoundError
from morphit_ros.geometry.height_map import load_height_map
from morphit_ros.geometry.mesh_io import load_mesh
from morphit_ros.geometry.transforms import Array, make_transform, matrix_from_quat_xyzw
from morphit_ros.resources import resource


@dataclass(frozen=True)
class CylinderBody:
    """A cylinder that a cover lies on.

    Attributes:
        radius, length: [m].
        pose: (7,) of its middle in the world, x, y, z [m], quaternion x, y, z, w; z is the axis.
    """

    radius: float
    length: float
    pose: tuple[float, ...]


@dataclass(frozen=True)
class CoverCase:
    """A cover, where it starts, where it goes, and what the paper reached.

    Attributes:
        cover, state: with motors; joints closed.
        target: where to.
        controller: gains, weights and limits.
        duration: of the run [s].
        published: (time [s], mean angle [degrees], mean distance [mm]) as the paper says.
        body: what the cover lies on, to be drawn, or None.
    """

    name: str
    cover: Cover
    state: CoverState
    target: SurfaceTarget
    controller: ControllerConfig
    duration: float
    published: tuple[tuple[float, float, float], ...]
    body: CylinderBody | None


def load_case(name: str, data: str | Path | None = None, overrides: dict[str, Any] | None = None) -> CoverCase:
    """A case of config/cover, or of a YAML file.

    Args:
        name: such as ``8x8``, or the path of a YAML file.
        data: JSON file with a cover, its start state and motors, or the folder with such a ``<name>.json``; without,
            start and motors are made here.
        overrides: of the controller's parameters.

    Raises:
        ResourceNotFoundError: no such case or file.
        InvalidInputError: a value in the file that cannot be used.
    """
    path = _case_file(name)
    try:
        content = read_yaml_file(path)
        settings = {**content.get("controller", {}), **(overrides or {})}
        base = make_transform(
            matrix_from_quat_xyzw(content.get("base", {}).get("quat_xyzw", (0.0, 0.0, 0.0, 1.0))),
            content.get("base", {}).get("position", (0.0, 0.0, 0.0)),
        )
        if data is not None:
            file = Path(data)
            cover, state = load_cover(file if file.suffix == ".json" else file / f"{path.stem}.json")
        else:
            cover, state = _made(content, base, path.stem)
        published = tuple((float(t), float(a), float(d)) for t, a, d in content.get("published", ()))
        controller = ControllerConfig.from_flat(settings)
        return CoverCase(
            path.stem, cover, state, _target(content["target"], cover, state, controller, path.parent), controller,
            float(content["duration"]), published, _body(content.get("body")),
        )  # fmt: skip
    except MorphitError:
        raise
    except (OSError, LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
        raise InvalidInputError(str(path), repr(error)[:80], "a case as in config/cover") from None


def _case_file(name: str) -> Path:
    if name.endswith((".yaml", ".yml")):
        path = Path(name)
        if not path.is_file():
            raise ResourceNotFoundError(
                name, [str(path.absolute().parent)], f"Cases of ours: {', '.join(case_names())}."
            )
        return path
    if name.endswith(".json"):
        raise InvalidInputError(
            "case", name, "a case: where to, how long, with which gains",
            f"This is a cover: hand it to a case, '{Path(name).stem} --start {name}'.",
        )  # fmt: skip
    if name not in case_names():
        known = f"Cases: {', '.join(case_names())}; or a YAML file like those."
        raise ResourceNotFoundError(name, [str(resource("config/cover"))], known)
    return resource(f"config/cover/{name}.yaml")


def case_names() -> list[str]:
    """The cases that come with the package."""
    return sorted(path.stem for path in resource("config/cover").glob("*.yaml"))


def _made(content: dict[str, Any], base: Array, name: str) -> tuple[Cover, CoverState]:
    """Start and motors by our own means."""
    shape = content["cover"]
    cover = Cover(
        int(shape["rows"]), int(shape["cols"]), float(shape["pitch"]), tuple(int(n) - 1 for n in shape["fixed_nodes"]),
        range_of_motion=float(np.radians(shape.get("range_of_motion", np.degrees(DEFAULT_RANGE_OF_MOTION)))), name=name,
    )  # fmt: skip
    if "start_roll" in content:
        state = roll(cover, float(np.radians(content["start_roll"])))
    else:
        state = lay_on_surface(cover, HeightTarget(str(content["start_surface"])))
    placed = place_motors(cover, [state], seed=0, starts=1 if cover.node_count > 100 else 4)
    return moved_to_base(cover.with_motors(placed.motors), state, base)


def _body(content: Any) -> CylinderBody | None:
    if content is None:
        return None
    radius, length = content["cylinder"]
    pose = [*content["position"], *content["quat_xyzw"]]
    return CylinderBody(float(radius), float(length), tuple(float(value) for value in pose))


def _target(content: Any, cover: Cover, state: CoverState, controller: ControllerConfig, folder: Path) -> SurfaceTarget:
    if isinstance(content, str):
        return HeightTarget(content)
    if "height_map" in content:
        # Files lie beside the case.
        found = load_height_map(folder / str(content["height_map"]))
        return HeightMapTarget(found.heights, found.origin, found.spacing)
    if "mesh" in content:
        return MeshTarget(load_mesh(folder / str(content["mesh"])))
    if "passage" in content:
        # A far target, reached through what lies between it and the start.
        last = HeightTarget(str(content["passage"]))
        return plan_passage(state.positions(cover), last, controller.rate_limit).target
    if "phases" in content:
        return HeightTarget([(float(phase.get("until", float("inf"))), str(phase["z"])) for phase in content["phases"]])
    return ParametricTarget([str(content[axis]) for axis in "xyz"], grid_parameters(cover))
