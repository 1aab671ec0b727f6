"""Superovoids of a robot as a YAML file keyed by link.

    robot: panda
    links:
      panda_link0:
        containment: none                       # or proven, vertices; may be missing
        errors: {mean: …, rms: …, max: …, inside: …, outside: …}   # [m], shares of the link's volume; may be missing
        deviation: {link_to_shapes: …, shapes_to_link: …}   # greatest distances, proven, rounded up [m]; may be missing
        superovoids:
        - semi_axes: [a1, a2, a3]               # [m]
          squareness: [e1, e2]                  # may be missing: 1, 1
          tapering: [Tx, Ty]                    # may be missing: 0, 0
          xyz: [x, y, z]                        # origin in the link [m]
          quat_xyzw: [x, y, z, w]               # axes in the link

Numbers are written so that they read back exactly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from morphit_ros.errors import InvalidInputError, ResourceNotFoundError
from morphit_ros.geometry.transforms import make_transform, matrix_from_quat_xyzw, quat_xyzw_from_matrix
from morphit_ros.resources import atomic_write, resource
from morphit_ros.superovoid.distances.placed import PlacedSuperovoid
from morphit_ros.superovoid.fits.errors import FitErrors
from morphit_ros.superovoid.robots.robot_model import LinkSuperovoids, RobotSuperovoids
from morphit_ros.superovoid.shapes.superovoid import Superovoid

if TYPE_CHECKING:
    import yaml

# Far above any robot's file.
MAX_FILE_BYTES = 1 << 24
_CONTAINMENTS = ("proven", "vertices", "none")
_DEVIATION_KEYS = ("link_to_shapes", "shapes_to_link")
_ERROR_KEYS = ("mean", "rms", "max", "inside", "outside")
# What a placed superovoid is written as: how many numbers, and what they are where they may be missing.
NUMBERS: Mapping[str, tuple[int, tuple[float, ...]]] = {
    "semi_axes": (3, ()),
    "squareness": (2, (1.0, 1.0)),
    "tapering": (2, (0.0, 0.0)),
    "xyz": (3, (0.0, 0.0, 0.0)),
    "quat_xyzw": (4, (0.0, 0.0, 0.0, 1.0)),
}


def numbers_of_placed(placed: PlacedSuperovoid) -> dict[str, Sequence[float]]:
    """The numbers of a placed superovoid by the keys of `NUMBERS` [m]."""
    return {
        "semi_axes": placed.shape.semi_axes,
        "squareness": placed.shape.squareness,
        "tapering": placed.shape.tapering,
        "xyz": placed.T_link_shape[:3, 3].tolist(),
        "quat_xyzw": quat_xyzw_from_matrix(placed.T_link_shape[:3, :3]).tolist(),
    }


def placed_from_numbers(values: Mapping[str, Sequence[float]]) -> PlacedSuperovoid:
    """The inverse of `numbers_of_placed`; the quaternion is normalised.

    Raises:
        InvalidInputError: numbers that make no superovoid or no pose; names their key.
    """
    shape = Superovoid.from_parameters([*values["semi_axes"], *values["squareness"], *values["tapering"]])
    return PlacedSuperovoid(shape, make_transform(matrix_from_quat_xyzw(values["quat_xyzw"]), values["xyz"]))


def format_model(model: RobotSuperovoids, comment: str = "") -> str:
    """The YAML text of a model; every line of `comment` becomes one at its top."""
    lines = [f"# {line}".rstrip() for line in comment.splitlines()]
    lines += [f"robot: {_quoted(model.robot_name)}", "links:" if model.links else "links: {}"]
    for name, link in model.links.items():
        lines.append(f"  {_quoted(name)}:")
        lines.append(f"    containment: {link.containment}")
        if link.errors is not None:
            known = {key: getattr(link.errors, key) for key in _ERROR_KEYS}
            figures = ", ".join(f"{key}: {_figure(value)}" for key, value in known.items() if math.isfinite(value))
            lines.append(f"    errors: {{{figures}}}")
        if link.deviation is not None:
            bounds = zip(_DEVIATION_KEYS, link.deviation, strict=True)
            lines.append(f"    deviation: {{{', '.join(f'{key}: {_rounded_up(value)}' for key, value in bounds)}}}")
        lines.append("    superovoids:")
        for placed in link.shapes:
            for number, (key, values) in enumerate(numbers_of_placed(placed).items()):
                lines.append(f"    {'- ' if number == 0 else '  '}{key}: {_numbers(values)}")
    return "\n".join(lines) + "\n"


def save_model(model: RobotSuperovoids, path: str | Path, comment: str = "") -> None:
    """Write a model; the file appears complete or not at all."""
    text = format_model(model, comment)
    with atomic_write(path) as stream:
        stream.write(text)


def load_model(name_or_path: str | Path) -> RobotSuperovoids:
    """Read a model by its name in config/superovoids or from a YAML file.

    Raises:
        ResourceNotFoundError: there is no such model; lists the known ones.
        InvalidInputError: not YAML, a key is missing, unknown or there twice, or a value is not what it must be; names
            file, line, key, value and bound.
    """
    file = Path(name_or_path)
    if file.suffix not in (".yaml", ".yml"):
        file = resource(f"config/superovoids/{name_or_path}.yaml")
    try:
        if file.stat().st_size > MAX_FILE_BYTES:
            raise InvalidInputError(
                file.name, f"{file.stat().st_size >> 20} MiB", f"at most {MAX_FILE_BYTES >> 20} MiB"
            )
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ResourceNotFoundError(str(file), [str(file.parent)], "Fit it: morphit superovoid fit.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(file.name, f"unreadable ({error})", "a YAML file in UTF-8") from error
    return parse_model(text, file.name)


def parse_model(text: str, source: str = "superovoids") -> RobotSuperovoids:
    """The model that a YAML text holds; `source` names it in errors.

    Raises:
        InvalidInputError: as of `load_model`.
    """
    root = _composed(text, source, "a YAML file of keys and values", "the keys robot, links")
    reader = _Reader(source)
    top = reader.mapping(root, "", ("robot", "links"))
    links = {}
    for name, node in reader.mapping(top["links"], "links").items():
        links[name] = reader.link(name, node, f"links.{name}")
    return RobotSuperovoids(reader.text(top["robot"], "robot"), links)


def parse_superovoid(text: str, source: str = "superovoid") -> PlacedSuperovoid:
    """One superovoid in YAML, with the keys of an entry of a model; xyz and quat_xyzw may be missing, too.

    Raises:
        InvalidInputError: as of `load_model`.
    """
    root = _composed(text, source, "keys and values", "the key semi_axes")
    return _Reader(source).superovoid(root, "", ("semi_axes",), ("xyz", "quat_xyzw"))


def _composed(text: str, source: str, kind: str, keys: str) -> yaml.Node:
    """The root node of a YAML text. Nodes know their lines, and no tag makes an object of them."""
    import yaml

    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError) as error:
        detail = " ".join(str(error).split())[:300]
        raise InvalidInputError(source, f"no YAML ({detail})", kind) from error
    if root is None:
        raise InvalidInputError(source, "nothing", keys)
    return root


class _Reader:
    """YAML nodes to values; errors name file, line and key."""

    def __init__(self, source: str) -> None:
        self._source = source

    def link(self, name: str, node: yaml.Node, key: str) -> LinkSuperovoids:
        entries = self.mapping(node, key, ("superovoids",), ("errors", "containment", "deviation"))
        shapes = tuple(
            self.superovoid(item, f"{key}.superovoids[{number}]")
            for number, item in enumerate(self._sequence(entries["superovoids"], f"{key}.superovoids"))
        )
        if not shapes:
            raise self._error(entries["superovoids"], f"{key}.superovoids", "none", "at least one")
        errors, containment, deviation = None, "none", None
        if "errors" in entries:
            errors = FitErrors(**self._figures(entries["errors"], f"{key}.errors", _ERROR_KEYS[:3], _ERROR_KEYS[3:]))
        if "deviation" in entries:
            bounds = self._figures(entries["deviation"], f"{key}.deviation", _DEVIATION_KEYS)
            deviation = bounds[_DEVIATION_KEYS[0]], bounds[_DEVIATION_KEYS[1]]
        if "containment" in entries:
            containment = self.text(entries["containment"], f"{key}.containment")
            if containment not in _CONTAINMENTS:
                bound = f"one of {', '.join(_CONTAINMENTS)}"
                raise self._error(entries["containment"], f"{key}.containment", repr(containment), bound)
        return LinkSuperovoids(name, shapes, errors, containment, deviation)  # type: ignore[arg-type]

    def _figures(
        self, node: yaml.Node, key: str, required: Sequence[str], optional: Sequence[str] = ()
    ) -> dict[str, float]:
        """Numbers by their keys, none of them negative."""
        given = self.mapping(node, key, required, optional)
        figures = {name: self._number(value, f"{key}.{name}") for name, value in given.items()}
        for figure, value in figures.items():
            if value < 0.0:
                raise self._error(given[figure], f"{key}.{figure}", value, "0 or more")
        return figures

    def superovoid(
        self,
        node: yaml.Node,
        key: str,
        required: Sequence[str] = ("semi_axes", "xyz", "quat_xyzw"),
        optional: Sequence[str] = (),
    ) -> PlacedSuperovoid:
        entries = self.mapping(node, key, required, ("squareness", "tapering", *optional))
        values = {
            name: self._numbers(entries[name], _below(key, name), count) if name in entries else default
            for name, (count, default) in NUMBERS.items()
        }
        try:
            length = float(np.linalg.norm(values["quat_xyzw"]))
            if abs(length - 1.0) > 1e-6:
                raise InvalidInputError("quat_xyzw", f"a quaternion of length {length:g}", "length 1")
            return placed_from_numbers(values)
        except InvalidInputError as error:
            at = entries.get(error.name, node)
            raise self._error(at, _below(key, error.name), error.value, error.bound, error.remedy) from error

    def mapping(
        self, node: yaml.Node, key: str, required: Sequence[str] | None = None, optional: Sequence[str] = ()
    ) -> dict[str, Any]:
        """Keys and nodes of a mapping; of any keys where none are required."""
        import yaml

        bound = f"the keys {', '.join(required)}" if required is not None else "keys and values"
        if not isinstance(node, yaml.MappingNode):
            raise self._error(node, key, self._shown(node), bound)
        found: dict[str, Any] = {}
        for name_node, value in node.value:
            name = self.text(name_node, f"{key}: a key")
            if name in found:
                raise self._error(name_node, key, f"'{name}' twice", "each key once")
            if required is not None and name not in (*required, *optional):
                raise self._error(name_node, key, f"the unknown key '{name}'", f"{', '.join((*required, *optional))}")
            found[name] = value
        missing = [name for name in required or () if name not in found]
        if missing:
            raise self._error(node, key, f"no {', '.join(missing)}", bound)
        return found

    def text(self, node: yaml.Node, key: str) -> str:
        import yaml

        if not isinstance(node, yaml.ScalarNode) or not node.tag.endswith(":str") or not node.value:
            raise self._error(node, key, self._shown(node), "a text", "Quote it if it looks like a number.")
        return str(node.value)

    def _sequence(self, node: yaml.Node, key: str) -> list[Any]:
        import yaml

        if not isinstance(node, yaml.SequenceNode):
            raise self._error(node, key, self._shown(node), "a list")
        return list(node.value)

    def _numbers(self, node: yaml.Node, key: str, count: int) -> list[float]:
        items = self._sequence(node, key)
        if len(items) != count:
            raise self._error(node, key, f"{len(items)} numbers", f"{count} numbers")
        return [self._number(item, f"{key}[{number}]") for number, item in enumerate(items)]

    def _number(self, node: yaml.Node, key: str) -> float:
        import yaml

        try:
            # YAML 1.1 takes 1e-3 for a text.
            value = float(node.value) if isinstance(node, yaml.ScalarNode) and node.style is None else math.nan
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise self._error(node, key, self._shown(node), "a finite number")
        return value

    def _shown(self, node: yaml.Node) -> str:
        import yaml

        return repr(node.value)[:80] if isinstance(node, yaml.ScalarNode) else f"a {node.id}"

    def _error(self, node: yaml.Node, key: str, value: object, bound: str, remedy: str = "") -> InvalidInputError:
        place = f"{self._source}, line {node.start_mark.line + 1}"
        return InvalidInputError(f"{place}: {key}" if key else place, value, bound, remedy)


def _below(key: str, name: str) -> str:
    return f"{key}.{name}" if key else name


def _quoted(name: str) -> str:
    """A name as YAML scalar that reads back as a text."""
    import yaml

    return str(yaml.safe_dump([name], default_flow_style=True, width=10_000, allow_unicode=True)).strip()[1:-1]


def _numbers(values: Sequence[float]) -> str:
    return "[" + ", ".join(repr(float(value)) for value in values) + "]"


def _figure(value: float) -> str:
    return repr(float(f"{value:.6g}"))


def _rounded_up(value: float) -> str:
    """A length in units of 0.1 µm, not less than it is."""
    return repr(math.ceil(1e7 * value) / 1e7)
