"""Masks of pictures that were taken before a plain background."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from morphit_ros.errors import InvalidInputError
from morphit_ros.neural.views.posed_views import PosedImages

# Colours of one background differ by less from the middle one of the picture's border, in any channel: noise and
# compression, no shading.
_TOLERANCE = 0.06


def with_masks(images: PosedImages) -> PosedImages:
    """The same pictures with masks; where they have none, the object is what differs from a plain background.

    The background is plain if all pixels of a picture's border have one colour (each picture may have its own). Parts
    of the object in that very colour count as background.

    Raises:
        InvalidInputError: no masks, and a background that is not plain, or a picture that shows nothing else.
    """
    if images.masks is not None:
        return images
    masks = np.empty(images.rgb.shape[:3], dtype=np.bool_)
    for index, (number, picture) in enumerate(zip(images.numbers, images.rgb, strict=True)):
        border = np.concatenate([picture[0], picture[-1], picture[:, 0], picture[:, -1]])
        color = np.median(border, axis=0)
        spread = float(np.abs(border - color).max())
        if spread > _TOLERANCE:
            raise InvalidInputError(
                "masks", f"none, and colours that differ by {spread:.2f} along the border of view {number}",
                f"masks, or a plain background (differences of at most {_TOLERANCE:g}) in every view",
                "Give masks of the object, or take it whole before a background of one colour.",
            )  # fmt: skip
        masks[index] = (np.abs(picture - color) > _TOLERANCE).any(axis=2)
        if not masks[index].any():
            raise InvalidInputError(
                "masks", f"none, and only background in view {number}", "the object in every view",
                "Leave such views out, or give masks.",
            )  # fmt: skip
    return replace(images, masks=masks)
