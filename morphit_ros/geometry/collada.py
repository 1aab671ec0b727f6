"""COLLADA files (DAE): the geometry that their scene shows, in metres."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array, matrix_from_rotation_vector

Faces = NDArray[np.int64]
Element = ElementTree.Element

# A node may show another any number of times: files that show more than this are hostile.
_MAX_INSTANCES, _MAX_DEPTH = 20_000, 200
# Up-axis to z up.
_UPRIGHT = {
    "X_UP": np.array([[0.0, -1.0, 0.0], [0.0, 0.0, -1.0], [1.0, 0.0, 0.0]]),
    "Y_UP": np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]),
    "Z_UP": np.eye(3),
}


def read_collada(data: bytes, apply_up_axis: bool = False, max_faces: int = 1 << 24) -> tuple[Array, Faces]:
    """Vertices (V, 3) [m] and faces (F, 3) of the bytes of a DAE file.

    Args:
        data: the file.
        apply_up_axis: turn the scene so that the file's up-axis becomes z.
        max_faces: of the whole scene.

    Raises:
        InvalidInputError: not XML, entity declarations, references that lead nowhere, wrong numbers of numbers,
            or too many faces.
    """
    if b"<!ENTITY" in data:
        raise InvalidInputError("DAE", "an entity declaration", "XML without a document type")
    try:
        root = ElementTree.fromstring(data)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise InvalidInputError("DAE", f"XML that cannot be parsed ({error})", "well-formed XML") from error
    # The name space differs between versions of the format.
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    return _Document(root, max_faces).scene(apply_up_axis)


class _Document:
    """One file, and the geometry read from it so far."""

    def __init__(self, root: Element, max_faces: int) -> None:
        self._root = root
        self._by_id = {element.get("id"): element for element in root.iter() if element.get("id")}
        self._geometries: dict[int, tuple[Array, Faces]] = {}
        self._left = max_faces

    def scene(self, apply_up_axis: bool) -> tuple[Array, Faces]:
        """Everything that the scene shows; all visual scenes, or else all geometries, of a file that names none."""
        unit = self._root.find("asset/unit")
        scale = 1.0 if unit is None else _number(unit.get("meter", "1"))
        if not (math.isfinite(scale) and scale > 0.0):
            raise InvalidInputError("DAE: unit", scale, "a positive number of metres")
        T_metres_file = np.diag([scale, scale, scale, 1.0])
        if apply_up_axis:
            up = (self._root.findtext("asset/up_axis") or "Y_UP").strip()
            if up not in _UPRIGHT:
                raise InvalidInputError("DAE: up_axis", up, f"one of {', '.join(_UPRIGHT)}")
            T_metres_file[:3, :3] = scale * _UPRIGHT[up]
        shown = self._root.find("scene/instance_visual_scene")
        scenes = (
            [self._target(shown)] if shown is not None else self._root.findall("library_visual_scenes/visual_scene")
        )
        vertices, faces, count = [np.empty((0, 3))], [np.empty((0, 3), dtype=np.int64)], 0
        for T_file_part, element in self._parts(scenes):
            own_vertices, own_faces = self._geometry(element)
            self._left -= len(own_faces)
            if self._left < 0:
                raise InvalidInputError("DAE", "too many faces", "fewer", "Simplify the mesh.")
            transform = T_metres_file @ T_file_part
            # A mirrored node must not turn its surface inside out.
            mirrored = np.linalg.det(transform[:3, :3]) < 0.0
            vertices.append(own_vertices @ transform[:3, :3].T + transform[:3, 3])
            faces.append((own_faces[:, ::-1] if mirrored else own_faces) + count)
            count += len(own_vertices)
        return np.concatenate(vertices), np.concatenate(faces)

    def _parts(self, scenes: list[Element]) -> Iterator[tuple[Array, Element]]:
        """Pose and <geometry> of every instance in the scenes."""
        if not scenes:
            yield from ((np.eye(4), element) for element in self._root.findall("library_geometries/geometry"))
            return
        pending = [(np.eye(4), node, 0) for scene in scenes for node in scene.findall("node")][::-1]
        instances = 0
        while pending:
            T_scene_parent, node, depth = pending.pop()
            instances += 1
            if depth > _MAX_DEPTH or instances > _MAX_INSTANCES:
                raise InvalidInputError("DAE", "nodes that show themselves, or too many", "a tree of nodes")
            T_scene_node = T_scene_parent @ _node_transform(node)
            for child in node:
                if child.tag == "instance_geometry":
                    yield T_scene_node, self._target(child)
                elif child.tag == "instance_controller":
                    yield self._skin(T_scene_node, self._target(child))
            inner = [child if child.tag == "node" else self._target(child) for child in node if child.tag in _INNER]
            pending += [(T_scene_node, child, depth + 1) for child in reversed(inner)]

    def _skin(self, T_scene_node: Array, controller: Element) -> tuple[Array, Element]:
        """Pose and <geometry> of a skin at rest."""
        skin = controller.find("skin")
        if skin is None:
            raise InvalidInputError("DAE", "a controller without <skin>", "a skin")
        bind = skin.find("bind_shape_matrix")
        matrix = np.eye(4) if bind is None else _floats(bind, 16).reshape(4, 4)
        return T_scene_node @ matrix, self._target(skin, "source")

    def _target(self, element: Element, attribute: str = "url") -> Element:
        """The element that another one refers to."""
        reference = element.get(attribute, "")
        target = self._by_id.get(reference[1:]) if reference.startswith("#") else None
        if target is None:
            raise InvalidInputError(f"DAE: <{element.tag}>", repr(reference), "the id of an element of the same file")
        return target

    def _geometry(self, element: Element) -> tuple[Array, Faces]:
        if id(element) not in self._geometries:
            self._geometries[id(element)] = self._read_geometry(element)
        return self._geometries[id(element)]

    def _read_geometry(self, element: Element) -> tuple[Array, Faces]:
        vertices, faces, count = [np.empty((0, 3))], [np.empty((0, 3), dtype=np.int64)], 0
        positions: dict[int, tuple[int, int]] = {}
        for primitive in element.iterfind("mesh/*"):
            if primitive.tag not in _PRIMITIVES:
                continue
            inputs = primitive.findall("input")
            stride = 1 + max((_index(entry.get("offset", "0")) for entry in inputs), default=0)
            used = next((entry for entry in inputs if entry.get("semantic") == "VERTEX"), None)
            if used is None or stride > 64:
                raise InvalidInputError(f"DAE: <{primitive.tag}>", "no input VERTEX", "indices of vertices")
            source = self._positions(self._target(used, "source"))
            if id(source) not in positions:
                points = self._points(source)
                positions[id(source)] = count, len(points)
                vertices.append(points)
                count += len(points)
            first, length = positions[id(source)]
            offset = _index(used.get("offset", "0"))
            triangles = _PRIMITIVES[primitive.tag](primitive, stride, offset)
            if len(triangles) and (triangles.min() < 0 or triangles.max() >= length):
                raise InvalidInputError(f"DAE: <{primitive.tag}>", f"index {triangles.max()}", f"below {length}")
            faces.append(triangles + first)
        return np.concatenate(vertices), np.concatenate(faces)

    def _positions(self, vertices: Element) -> Element:
        """The <source> with the positions of <vertices>, which may also be named directly."""
        if vertices.tag == "source":
            return vertices
        entry = next((entry for entry in vertices.findall("input") if entry.get("semantic") == "POSITION"), None)
        if entry is None:
            raise InvalidInputError("DAE: <vertices>", "no input POSITION", "positions")
        return self._target(entry, "source")

    def _points(self, source: Element) -> Array:
        holder = source.find("float_array")
        if holder is None:
            raise InvalidInputError("DAE: <source>", "no <float_array>", "positions")
        values = _floats(holder)
        accessor = source.find("technique_common/accessor")
        stride = 3 if accessor is None else _index(accessor.get("stride", "1"))
        offset = 0 if accessor is None else _index(accessor.get("offset", "0"))
        if stride < 3 or offset > len(values):
            raise InvalidInputError("DAE: <accessor>", f"stride {stride}, offset {offset}", "three coordinates a point")
        values = values[offset:]
        return values[: len(values) // stride * stride].reshape(-1, stride)[:, :3]


def _node_transform(node: Element) -> Array:
    """Product of a node's transformations in their order."""
    result = np.eye(4)
    for element in node:
        step = np.eye(4)
        if element.tag == "matrix":
            step = _floats(element, 16).reshape(4, 4)
        elif element.tag == "translate":
            step[:3, 3] = _floats(element, 3)
        elif element.tag == "scale":
            step[:3, :3] = np.diag(_floats(element, 3))
        elif element.tag == "rotate":
            x, y, z, degrees = _floats(element, 4)
            length = math.hypot(x, y, z)
            if length > 0.0:
                turn = np.array([x, y, z]) / length * math.radians(math.fmod(degrees, 360.0))
                step[:3, :3] = matrix_from_rotation_vector(turn)
        elif element.tag in ("lookat", "skew"):
            raise InvalidInputError("DAE: <node>", f"<{element.tag}>", "matrix, translate, rotate or scale")
        else:
            continue
        result = result @ step
    return result


def _triangles(primitive: Element, stride: int, offset: int) -> Faces:
    corners = np.concatenate([_indices(element, stride, offset) for element in primitive.findall("p")] or [_NONE])
    if len(corners) % 3:
        raise InvalidInputError("DAE: <triangles>", f"{len(corners)} corners", "three for each triangle")
    return corners.reshape(-1, 3)


def _polylist(primitive: Element, stride: int, offset: int) -> Faces:
    element, counts = primitive.find("p"), primitive.find("vcount")
    if element is None or counts is None:
        return np.empty((0, 3), dtype=np.int64)
    corners, sizes = _indices(element, stride, offset), _integers(counts)
    if (sizes < 0).any() or sizes.max(initial=0) > len(corners) or int(sizes.sum()) != len(corners):
        raise InvalidInputError("DAE: <polylist>", f"{len(corners)} corners", "as many as <vcount> adds up to")
    starts = np.cumsum(sizes) - sizes
    # Polygon by polygon a fan: its first corner, and two that follow each other.
    fans = np.maximum(sizes - 2, 0)
    step = np.arange(fans.sum()) - np.repeat(np.cumsum(fans) - fans, fans)
    first = np.repeat(starts, fans)
    return np.stack([corners[first], corners[first + step + 1], corners[first + step + 2]], axis=1)


def _fans(primitive: Element, stride: int, offset: int) -> Faces:
    return _rows(primitive, stride, offset, lambda c: np.stack([np.full(len(c) - 2, c[0]), c[1:-1], c[2:]], axis=1))


def _strips(primitive: Element, stride: int, offset: int) -> Faces:
    def faces(corners: Faces) -> Faces:
        rows = np.stack([corners[:-2], corners[1:-1], corners[2:]], axis=1)
        rows[1::2] = rows[1::2, ::-1]
        return rows

    return _rows(primitive, stride, offset, faces)


def _rows(primitive: Element, stride: int, offset: int, faces: Callable[[Faces], Faces]) -> Faces:
    """The faces of each <p>, which <ph> may wrap for a polygon with holes (the holes are closed)."""
    rows = [_indices(element, stride, offset) for element in primitive.iter("p")]
    return np.concatenate([faces(row) for row in rows if len(row) >= 3] or [np.empty((0, 3), dtype=np.int64)])


_NONE: Faces = np.empty(0, dtype=np.int64)
_INNER = ("node", "instance_node")
_PRIMITIVES = {
    "triangles": _triangles,
    "polylist": _polylist,
    "polygons": _fans,
    "trifans": _fans,
    "tristrips": _strips,
}


def _indices(element: Element, stride: int, offset: int) -> Faces:
    values = _integers(element)
    if len(values) % stride:
        raise InvalidInputError("DAE: <p>", f"{len(values)} indices", f"a multiple of {stride}")
    return values[offset::stride]


def _integers(element: Element) -> Faces:
    try:
        return np.fromiter(map(int, (element.text or "").split()), dtype=np.int64)
    except (ValueError, OverflowError) as error:
        raise InvalidInputError(f"DAE: <{element.tag}>", f"indices ({error})", "whole numbers") from error


def _floats(element: Element, count: int | None = None) -> Array:
    try:
        values = np.fromiter(map(float, (element.text or "").split()), dtype=np.float64)
    except ValueError as error:
        raise InvalidInputError(f"DAE: <{element.tag}>", f"text ({error})", "numbers") from error
    if count is not None and len(values) != count:
        raise InvalidInputError(f"DAE: <{element.tag}>", f"{len(values)} numbers", f"{count} numbers")
    return values


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _index(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = -1
    if not 0 <= value < 1 << 31:
        raise InvalidInputError("DAE", repr(text), "a whole number that is not negative")
    return value
