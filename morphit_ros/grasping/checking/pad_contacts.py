"""What the pads press where the fingers have closed on a cloud: results of `closing`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.transforms import Array
from morphit_ros.grasping.fitting.correspondences import Index

# Columns of a finger's row in `PadContacts.fingers`.
HEIGHT, AREA, MEAN_X, MEAN_Z, SPREAD_X, SPREAD_Z, NORMAL_X, NORMAL_Y, NORMAL_Z, SEEN = range(10)
_COLUMNS = 10


@dataclass(frozen=True)
class PadContacts:
    """What the pads press at S poses.

    Attributes:
        fingers: (S, 2, 10) a finger: distance of its touching plane from the middle towards the finger [m] (NaN where
            it touches nothing), area [m²], middle along x and z [m], standard deviation along x and z [m], mean
            outward normal of the patch (3, unit, gripper frame), share of the patch that a camera saw. Places count by
            the pressure on them, which falls with their depth below the highest ones; for the normal all count alike.
        overlap: (S,) area borne from both sides [m²]: pressed, or between pressed places of the pad. Where it is not
            empty, a line along the closing direction joins the two contacts: a pinch of a thin wall needs it as much as
            a grasp of a box.
        cells: (S,) smaller number of touched cells of the two fingers.
    """

    fingers: Array
    overlap: Array
    cells: Index

    @staticmethod
    def empty(count: int) -> PadContacts:
        """Contacts of so many poses, to be filled."""
        return PadContacts(np.zeros((count, 2, _COLUMNS)), np.zeros(count), np.zeros(count, np.int64))

    def select(self, index: slice | NDArray[np.bool_] | Index) -> PadContacts:
        """The contacts of some of the poses."""
        return PadContacts(self.fingers[index], self.overlap[index], self.cells[index])

    @property
    def touched(self) -> NDArray[np.bool_]:
        """(S,) whether both fingers touch something."""
        finite = np.isfinite(self.fingers[:, :, HEIGHT])
        return finite[:, 0] & finite[:, 1]

    @property
    def apertures(self) -> Array:
        """(S,) opening at contact [m]."""
        opening: Array = self.fingers[:, :, HEIGHT].sum(axis=1)
        return opening

    @property
    def shifts(self) -> Array:
        """(S,) how far the middle of the contacts lies from the gripper's middle, towards finger 1 [m]."""
        shift: Array = 0.5 * (self.fingers[:, 0, HEIGHT] - self.fingers[:, 1, HEIGHT])
        return shift

    @property
    def angles(self) -> Array:
        """(S, 2) between the mean normal of a patch and the closing direction [rad]; a right angle without contact."""
        cosine = self.fingers[:, :, NORMAL_Y] * np.array([1.0, -1.0])
        return np.where(np.isfinite(cosine), np.arccos(np.clip(np.nan_to_num(cosine), -1.0, 1.0)), 0.5 * np.pi)
