"""What is drawn of a robot's spheres."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from morphit_ros.display.display_list import PALETTE, Item, Rgb, SpheresItem
from morphit_ros.geometry.transforms import Array


def sphere_items(
    links: Mapping[str, tuple[Array, Array]], colors: Sequence[Rgb] = PALETTE, opacity: float = 0.5
) -> list[Item]:
    """Spheres of links, each in its own frame: link → centres (N, 3) and radii (N,) [m]; links take colours in turn."""
    return [
        SpheresItem(f"spheres/{link}", colors[number % len(colors)], centers, radii, frame=link, opacity=opacity)
        for number, (link, (centers, radii)) in enumerate(links.items())
    ]
