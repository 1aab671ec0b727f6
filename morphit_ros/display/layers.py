"""A viser server whose scene consists of layers that can be shown, hidden, updated in place and cleared."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from morphit_ros.dependencies import needed_for
from morphit_ros.display.access import Access, check_address, controlled, port_taken
from morphit_ros.display.display_list import DisplayList
from morphit_ros.display.panel import Panel
from morphit_ros.display.viser_nodes import viser_node
from morphit_ros.geometry.transforms import Array, quat_xyzw_from_matrix


class Lights(NamedTuple):
    """Strengths as viser counts them.

    Attributes:
        environment: of the studio around the scene.
        ambient: from everywhere.
        sun: of the directional light.
        position: (3,) from where it shines on the origin [m].
    """

    environment: float
    ambient: float
    sun: float
    position: tuple[float, float, float] = (1.0, -1.5, 3.0)


class LayeredServer:
    """Nodes under layers: the node "object/points" belongs to the layer "object" and shares its visibility.

    Not safe for several threads by itself.

    Attributes:
        scene: viser's scene, to add nodes with.
        gui: viser's controls, to add more of them with.
        panel: the panel beside the scene, with one checkbox a layer.
    """

    def __init__(self, host: str, port: int, title: str) -> None:
        """Start serving on a loopback address.

        Raises:
            InvalidInputError: a host that is not loopback, or a port that is taken or out of range.
            MissingDependencyError: viser is not installed.
        """
        check_address(host, port)
        self._access = Access()
        self._server = _start(host, port, self._access)
        self._begin("")
        self.panel = Panel(self.gui, title)

    def _begin(self, prefix: str) -> None:
        self._prefix = prefix
        self._layers: dict[str, Any] = {}
        self._nodes: dict[str, Any] = {}
        self.scene = self._server.scene
        self.gui = self._server.gui

    def part(self, name: str, label: str) -> LayeredPart:
        """Further layers on the same page.

        Args:
            name: of the node that all of them are below.
            label: of their folder in the panel.
        """
        return LayeredPart(self._server, self._access, f"{self._prefix}/{name}", label)

    @property
    def has_clients(self) -> bool:
        """Whether a browser shows the page."""
        return bool(self._server.get_clients())

    @property
    def url(self) -> str:
        """Where a browser finds the view."""
        host = self._server.get_host()
        address = f"{f'[{host}]' if ':' in host else host}:{self._server.get_port()}"
        return f"http://{address}{self._access.query}"

    @property
    def layers(self) -> list[str]:
        """Names of all layers."""
        return list(self._layers)

    def set_camera(self, position: ArrayLike, look_at: ArrayLike, fov: float) -> None:
        """Where browsers look from and to, points (3,) [m], and their vertical field of view [rad]."""
        eye, target = np.asarray(position, dtype=np.float64), np.asarray(look_at, dtype=np.float64)
        cameras = [self._server.initial_camera, *(client.camera for client in self._server.get_clients().values())]
        for camera in cameras:
            camera.position, camera.look_at, camera.fov = eye, target, fov

    def light(self, lights: Lights) -> None:
        """z up, and light."""
        self.scene.set_up_direction("+z")
        self.scene.configure_environment_map("studio", environment_intensity=lights.environment)
        self.scene.configure_default_lights(enabled=False)
        self.scene.add_light_ambient("/ambient", intensity=lights.ambient)
        self.scene.add_light_directional("/sun", intensity=lights.sun, position=lights.position)

    def add_floor(self, size: float, cell: float, section: float, position: ArrayLike) -> None:
        """A square grid with finer and coarser lines [m] in a horizontal plane, in place of the one before."""
        x, y, z = np.asarray(position, dtype=np.float64).tolist()
        self.scene.add_grid(
            "/floor", size, size, cell_size=cell, section_size=section, position=(x, y, z),
            cell_color=(58, 64, 72), section_color=(84, 92, 102),
        )  # fmt: skip

    def add_layer(self, name: str, label: str, visible: bool) -> None:
        """Add an empty layer and its checkbox."""
        root = self.scene.add_frame(f"{self._prefix}/{name}", show_axes=False, visible=visible)
        self._layers[name] = root
        self.panel.add_layer(name, label, visible, lambda shown: setattr(root, "visible", shown))

    def remove_layer(self, name: str) -> None:
        """Remove a layer with its nodes and its checkbox."""
        self.clear(name)
        self._layers.pop(name).remove()
        self.panel.remove_layer(name)

    def show(self, name: str, visible: bool) -> None:
        """Show or hide a layer, as its checkbox does."""
        self._layers[name].visible = visible
        self.panel.set_layer(name, visible)

    def is_shown(self, name: str) -> bool:
        """Whether a layer is shown."""
        return bool(self._layers[name].visible)

    def put(self, name: str, add: Callable[..., Any], **properties: Any) -> Any:
        """Update the properties of a node, or add it: ``add(name, **properties)`` if there is none.

        Returns:
            The node if it was added, to be listened to; else None.
        """
        node = self._nodes.get(name)
        if node is None:
            self._nodes[name] = add(f"{self._prefix}/{name}", **properties)
            return self._nodes[name]
        # Points and colours of a new length reach the browser together.
        with self._server.atomic():
            for key, value in properties.items():
                setattr(node, key, value)
        return None

    def draw(self, items: DisplayList) -> None:
        """Draw items under their names, in place of what had these names; items of nothing take it away."""
        for item in items:
            kind, properties = viser_node(item)
            if all(len(properties[name]) for name in ("points", "faces", "batched_positions") if name in properties):
                self.put(item.name, getattr(self.scene, f"add_{kind}"), **properties)
                self.place(item.name, item.pose)
            else:
                self.remove(item.name)

    def place(self, name: str, T_parent_node: Array) -> None:
        """Move a node in its layer, or a layer in the world; a node that does not exist is left out."""
        node = self._nodes.get(name, self._layers.get(name))
        if node is not None:
            x, y, z, w = quat_xyzw_from_matrix(T_parent_node[:3, :3])
            node.wxyz = np.array([w, x, y, z])
            node.position = T_parent_node[:3, 3]

    def remove(self, name: str) -> None:
        """Remove a node if it exists."""
        node = self._nodes.pop(name, None)
        if node is not None:
            node.remove()

    def clear(self, layer: str) -> None:
        """Remove all nodes of a layer."""
        for name in [name for name in self._nodes if name.startswith(f"{layer}/")]:
            self.remove(name)

    def stop(self) -> None:
        """Stop serving."""
        _stop(self._server)


class LayeredPart(LayeredServer):
    """Layers on the page of another server: camera, light and floor are that page's, and so is its end."""

    def __init__(self, server: Any, access: Access, prefix: str, label: str) -> None:
        self._server, self._access = server, access
        self._begin(prefix)
        self.panel = Panel(self.gui, label, part=True)

    def set_camera(self, position: ArrayLike, look_at: ArrayLike, fov: float) -> None:
        pass

    def light(self, lights: Lights) -> None:
        pass

    def add_floor(self, size: float, cell: float, section: float, position: ArrayLike) -> None:
        pass

    def stop(self) -> None:
        pass


def _start(host: str, port: int, access: Access) -> Any:
    """A viser server on exactly this port, with access as given."""
    with needed_for("the browser view"):
        import viser
    # viser prints a banner, whatever its verbosity; callers have their own way to tell the address.
    with contextlib.redirect_stdout(io.StringIO()), controlled(access):
        server = viser.ViserServer(host=host, port=port, verbose=False)
    if port and server.get_port() != port:
        # viser takes the next free port when another process was quicker.
        _stop(server)
        raise port_taken(port, "taken by another program")
    return server


def _stop(server: Any) -> None:
    """Stop a viser server without the line it prints."""
    with contextlib.redirect_stdout(io.StringIO()):
        server.stop()
