"""YAML read without trust and written the same way on every run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from morphit_ros.errors import InvalidInputError
from morphit_ros.spheres.exports.records import Row
from morphit_ros.spheres.robot_model import SphereModel

_DEEPEST = 50


def read_yaml(text: str, source: str) -> dict[str, Any]:
    """The mapping that a YAML document holds.

    Only plain data are read: tags that would build objects are refused, aliases too, since a few lines of them
    grow without bound, and so is nesting deep enough to exhaust the parser's stack.

    Raises:
        InvalidInputError: none of this, or text that is not YAML (with its line).
    """
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        depth = 0
        for event in yaml.parse(text, Loader=loader):
            if isinstance(event, yaml.AliasEvent):
                line = event.start_mark.line + 1
                raise InvalidInputError(source, f"an alias at line {line}", "YAML without aliases", "Write it out.")
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEEPEST:
                raise InvalidInputError(source, f"more than {_DEEPEST} nested collections", "a flatter document")
        document = yaml.load(text, Loader=loader)
    except (yaml.YAMLError, ValueError) as error:
        if isinstance(error, InvalidInputError):
            raise
        mark = getattr(error, "problem_mark", None)
        place = "" if mark is None else f" at line {mark.line + 1}, column {mark.column + 1}"
        said = getattr(error, "problem", None) or str(error)
        raise InvalidInputError(source, f"YAML that cannot be read{place} ({said[:200]})", "plain YAML") from error
    if not isinstance(document, dict):
        raise InvalidInputError(source, f"a {type(document).__name__}", "a mapping")
    return document


def write_yaml(document: Mapping[str, Any]) -> str:
    """YAML in the order of the mapping; lists of numbers and names on one line, numbers that read back exactly."""
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(
        document, Dumper=dumper, default_flow_style=None, sort_keys=False, allow_unicode=True, width=1 << 30
    )
    return text


def entry(document: Any, *keys: str) -> Any:
    """The value under nested keys, None if there is none."""
    for key in keys:
        if not isinstance(document, dict) or key not in document:
            return None
        document = document[key]
    return document


def sphere_entries(model: SphereModel) -> dict[str, list[dict[str, Any]]]:
    """Link → [{center, radius}], as cuRobo and XRDF write spheres [m]."""
    return {
        name: [
            {"center": center, "radius": radius}
            for center, radius in zip(spheres.centers.tolist(), spheres.radii.tolist(), strict=True)
        ]
        for name, spheres in model.links.items()
    }


def ignore_entries(pairs: tuple[tuple[str, str], ...], order: Mapping[str, object]) -> dict[str, list[str]]:
    """Link → links further on in the order that are not checked against it."""
    rank = {name: number for number, name in enumerate(order)}
    sorted_pairs = sorted(sorted((rank[first], rank[second])) for first, second in pairs)
    names = list(order)
    ignored: dict[str, list[str]] = {}
    for first, second in sorted_pairs:
        ignored.setdefault(names[first], []).append(names[second])
    return ignored


def sphere_rows(entries: Any, source: str) -> Iterator[Row]:
    """Rows of link → [{center, radius}]; placeholders, whose radius is below 0, are left out.

    cuRobo and XRDF keep room for the spheres of a grasped object by entries of negative radius.

    Raises:
        InvalidInputError: another form, or something that is not a number; names link and sphere.
    """
    if not isinstance(entries, dict):
        raise InvalidInputError(source, f"spheres as {type(entries).__name__}", "link → list of center and radius")
    for link, spheres in entries.items():
        if not isinstance(spheres, list):
            bound = "a list of center and radius"
            raise InvalidInputError(f"link '{str(link)[:80]}'", type(spheres).__name__, bound)
        for number, sphere in enumerate(spheres, 1):
            where = f"link '{str(link)[:80]}': sphere {number}"
            center, radius = entry(sphere, "center"), _number(entry(sphere, "radius"), f"{where}: radius")
            if not isinstance(center, list) or len(center) != 3:
                raise InvalidInputError(f"{where}: center", type(center).__name__, "three numbers [m]")
            if radius < 0.0:
                continue
            yield str(link), [_number(value, f"{where}: center") for value in center], radius, where


def _number(value: Any, where: str) -> float:
    """A number; YAML 1.2 has numbers such as 1e-05 that a YAML 1.1 parser takes for text."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise InvalidInputError(where, "nothing" if value is None else type(value).__name__, "a number")
    try:
        return float(value)
    except (ValueError, OverflowError):
        raise InvalidInputError(where, repr(value)[:80], "a number") from None
