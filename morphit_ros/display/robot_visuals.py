"""What a robot looks like: one GLB a link, from its visual elements or, without any, its collision elements."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.mesh_io import metres_per_unit
from morphit_ros.robot.description import RobotDescription
from morphit_ros.robot.links import GeometryKind, Link, LinkGeometry, collision_mesh

Rgba = tuple[float, float, float, float]

_DEFAULT_COLOR: Rgba = (0.72, 0.75, 0.78, 1.0)


def link_glbs(robot: RobotDescription) -> dict[str, bytes]:
    """Binary glTF of every link that has geometry, in the frame of the link: link name → GLB.

    A mesh file keeps its own colours unless the URDF gives the element a material. Visual meshes that
    are not on this machine are replaced by the collision geometry of their link.

    Raises:
        InvalidInputError: a mesh file cannot be read.
    """
    colors = _urdf_colors(robot.xml)
    return {
        name: _glb(link, colors.get(name, [])) for name, link in robot.links.items() if link.visuals or link.collisions
    }


def _glb(link: Link, colors: list[Rgba | None]) -> bytes:
    import trimesh

    elements = list(zip(link.visuals, colors, strict=True))
    found = all(element.kind is not GeometryKind.MESH or element.path is not None for element in link.visuals)
    if link.collisions and not (link.visuals and found):
        elements = [(element, None) for element in link.collisions]
    scene = trimesh.Scene()
    for element, color in elements:
        if element.kind is not GeometryKind.MESH:
            scene.add_geometry(_painted(collision_mesh(element), color or _DEFAULT_COLOR))
        elif element.path is not None:
            _add_mesh_file(scene, element, element.path, color)
    return scene.export(file_type="glb") if scene.geometry else b""


def _add_mesh_file(scene: Any, element: LinkGeometry, path: Path, color: Rgba | None) -> None:
    """Add a mesh file with its colours, units and the element's scale and origin."""
    import trimesh

    remedy = "Open it in a mesh viewer to see what is wrong."
    try:
        loaded = trimesh.load(path, force="scene")
    # The readers behind trimesh raise whatever their parsers raise: any of it means an unreadable file.
    except Exception as error:
        raise InvalidInputError(str(path), f"unreadable ({error})", "a mesh file", remedy) from error
    if not any(isinstance(part, trimesh.Trimesh) and len(part.faces) for part in loaded.geometry.values()):
        raise InvalidInputError(str(path), "no face", "a mesh file", remedy)
    # The up-axis of a DAE file is left alone, as RViz does: robot descriptions rely on it.
    T_link_file = element.T_link_geometry @ np.diag([*(element.dimensions * metres_per_unit(loaded, path)), 1.0])
    for node in loaded.graph.nodes_geometry:
        T_file_part, name = loaded.graph[node]
        part = loaded.geometry[name]
        if not isinstance(part, trimesh.Trimesh):
            continue
        part = part.copy()
        # A mirroring scale flips the faces as well.
        part.apply_transform(T_link_file @ T_file_part)
        if color is not None or not part.visual.defined:
            part = _painted(part, color or _DEFAULT_COLOR)
        scene.add_geometry(part)


def _painted(mesh: Any, color: Rgba) -> Any:
    """A trimesh with the faces of a mesh, in one colour."""
    import trimesh

    material = trimesh.visual.material.PBRMaterial(
        baseColorFactor=np.array(color), metallicFactor=0.0, roughnessFactor=0.8
    )
    visual = trimesh.visual.TextureVisuals(material=material)
    return trimesh.Trimesh(np.asarray(mesh.vertices), np.asarray(mesh.faces), visual=visual, process=False)


def _urdf_colors(xml: str) -> Mapping[str, list[Rgba | None]]:
    """Link → colour of each of its visual elements in order, None where the URDF gives none."""
    root = ElementTree.fromstring(xml.strip().encode("utf-8"))
    named = {material.get("name", ""): _rgba(material) for material in root.findall("material")}
    colors: dict[str, list[Rgba | None]] = {}
    for link in root.findall("link"):
        colors[link.get("name", "")] = found = []
        for visual in link.findall("visual"):
            material = visual.find("material")
            own = None if material is None else _rgba(material)
            found.append(own if own or material is None else named.get(material.get("name", "")))
    return colors


def _rgba(material: ElementTree.Element) -> Rgba | None:
    element = material.find("color")
    values = [] if element is None else [float(part) for part in element.get("rgba", "").split()]
    return (values[0], values[1], values[2], values[3]) if len(values) == 4 else None
