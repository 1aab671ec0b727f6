"""The formats of sphere models in one place: which there are, how to write and how to read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.robot.description import RobotDescription
from morphit_ros.spheres.exports.curobo import curobo_from_model, model_from_curobo
from morphit_ros.spheres.exports.planner import MotionPlannerConfig
from morphit_ros.spheres.exports.srdf import model_from_srdf, srdf_from_model
from morphit_ros.spheres.exports.tables import csv_from_model, json_from_model, model_from_csv, model_from_json
from morphit_ros.spheres.exports.urdf import check_links, model_from_urdf, spherized_urdf
from morphit_ros.spheres.exports.xrdf import model_from_xrdf, xrdf_from_model
from morphit_ros.spheres.robot_model import SphereModel
from morphit_ros.spheres.self_collision.matrix import SelfCollisionMatrix, self_collision_matrix


@dataclass(frozen=True)
class ModelFormat:
    """A format that sphere models are written in and read from.

    Attributes:
        name: for `export_model` and the command line.
        suffixes: of its files, the usual one first.
        needs_robot: whether writing it needs the robot's description.
        says: in one line, what it is for.
        read: text → model.
    """

    name: str
    suffixes: tuple[str, ...]
    needs_robot: bool
    says: str
    read: Callable[[str], SphereModel]


FORMATS: Mapping[str, ModelFormat] = {
    entry.name: entry
    for entry in (
        ModelFormat("urdf", (".urdf",), True, "the robot with spheres as collision geometry", model_from_urdf),
        ModelFormat("srdf", (".srdf",), True, "MoveIt: spheres and pairs that need no check", model_from_srdf),
        ModelFormat("curobo", (".yml", ".yaml"), True, "cuRobo: robot configuration", model_from_curobo),
        ModelFormat("curobo-0.7", (".yml", ".yaml"), True, "cuRobo up to 0.7: robot configuration", model_from_curobo),
        ModelFormat("xrdf", (".xrdf",), True, "cuMotion, Isaac Sim, cuRobo: beside a URDF", model_from_xrdf),
        ModelFormat("json", (".json",), False, "everything known of the spheres", model_from_json),
        ModelFormat("csv", (".csv",), False, "a table: link, x, y, z, radius", model_from_csv),
    )
}


def format_of(path: str | Path) -> str:
    """The name of the format that files of this suffix usually have, the first of `FORMATS` where several share it.

    Raises:
        InvalidInputError: no format has the suffix.
    """
    suffix = Path(path).suffix.lower()
    for entry in FORMATS.values():
        if suffix in entry.suffixes:
            return entry.name
    known = ", ".join(dict.fromkeys(suffix for entry in FORMATS.values() for suffix in entry.suffixes))
    raise InvalidInputError("suffix", repr(suffix), f"one of {known}", "Or name the format.")


def export_model(
    model: SphereModel,
    description: RobotDescription | None,
    format: str,
    *,
    padding: float = 0.0,
    self_collision: SelfCollisionMatrix | None = None,
    srdf: str | None = None,
    planner: MotionPlannerConfig | None = None,
    home: Mapping[str, float] | None = None,
) -> str:
    """A sphere model as text.

    Args:
        model: the robot as spheres.
        description: the robot; may be None for json and csv.
        format: a name in `FORMATS`.
        padding: added to the radii in urdf and srdf, the planner's own buffer in curobo and xrdf [m]; json and csv
            keep the spheres as they are and refuse one.
        self_collision: pairs of links for srdf, curobo and xrdf; computed if None.
        srdf: for srdf, an existing text to merge into.
        planner: for curobo and xrdf, what is in no URDF.
        home: for srdf, curobo and xrdf, positions by joint [rad or m]: the planner's default position, and pairs
            that touch there are ignored ("Default").

    Raises:
        InvalidInputError: an unknown format, no description where it is needed, an unknown link, or a padding that
            makes a radius vanish.
    """
    entry = _format(format)
    if format in ("json", "csv"):
        if padding != 0.0:
            raise InvalidInputError("padding", padding, f"0 for {format}, which keeps the spheres as they are")
        return json_from_model(model) if format == "json" else csv_from_model(model)
    if description is None:
        raise InvalidInputError("description", None, f"a robot description: {entry.name} needs it")
    if format == "urdf":
        return spherized_urdf(description, model, padding)
    check_links(model, description)
    if self_collision is None:
        added = padding if format == "srdf" else 0.0
        self_collision = self_collision_matrix(model, description, padding=added, home=home)
    if format == "srdf":
        return srdf_from_model(model, description, self_collision, padding, srdf)
    writers: Mapping[str, Callable[..., str]] = {
        "curobo": curobo_from_model,
        "curobo-0.7": partial(curobo_from_model, version=1),
        "xrdf": xrdf_from_model,
    }
    return writers[format](model, description, self_collision, planner, home, padding)


def read_model(
    source: str | Path, description: RobotDescription | None = None, format: str | None = None
) -> SphereModel:
    """A sphere model from a file or a text.

    Only json carries everything. Models of other formats have NaN for d_avg and d_max, the variant "imported" and
    content hashes computed from the spheres; curobo, xrdf and csv don't carry the robot's name either.

    Args:
        source: a path, or the text itself if it is a str with a line break or one that starts with < or {.
        description: the robot; gives a model without name its name, and its links are the only ones allowed.
        format: a name in `FORMATS`; None to tell by suffix and contents.

    Raises:
        ResourceNotFoundError: there is no such file.
        InvalidInputError: not a text in UTF-8, not of that format, a sphere that makes no sense, or a link that the
            description lacks; names the place.
    """
    text, suffix, name = _text(source)
    reader = _format(format) if format is not None else FORMATS[_recognised(text, suffix)]
    try:
        model = reader.read(text)
    except InvalidInputError as error:
        raise InvalidInputError(f"{name}: {error.name}", error.value, error.bound, error.remedy) from error
    if description is not None:
        check_links(model, description)
        model = model if model.robot_name else replace(model, robot_name=description.name)
    return model


def _format(name: str) -> ModelFormat:
    if name not in FORMATS:
        raise InvalidInputError("format", repr(name), f"one of {', '.join(FORMATS)}")
    return FORMATS[name]


def _text(source: str | Path) -> tuple[str, str, str]:
    """Text, suffix and name for messages of a source."""
    if isinstance(source, str) and ("\n" in source or source.lstrip("\ufeff \t").startswith(("<", "{"))):
        return source.removeprefix("\ufeff"), "", "text"
    path = Path(source)
    try:
        found = path.is_file()
    # A text that was taken for a path may be too long for one, or hold a zero.
    except (OSError, ValueError):
        found = False
    if not found:
        raise ResourceNotFoundError(str(source)[:200], [str(path.absolute())[:400]], "Name a file of spheres.")
    try:
        return path.read_bytes().decode("utf-8-sig"), path.suffix.lower(), path.name
    except UnicodeDecodeError as error:
        raise InvalidInputError(path.name, f"byte {error.start} that is no UTF-8", "text in UTF-8") from error


def _recognised(text: str, suffix: str) -> str:
    """The format of a text: by its suffix, where several formats share it or it is unknown by its contents."""
    if suffix in (".urdf", ".srdf", ".xrdf", ".json", ".csv"):
        return suffix[1:]
    start = text.lstrip()
    if start.startswith("<"):
        return "srdf" if "<link_sphere_approximation" in text else "urdf"
    if start.startswith("{"):
        return "json"
    if start.startswith("link,"):
        return "csv"
    return "xrdf" if any(line.split("#")[0].split() == ["format:", "xrdf"] for line in text.splitlines()) else "curobo"
