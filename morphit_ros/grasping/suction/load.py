"""What a sealed cup holds: pull, shear, moment about the lip, torsion.

The vacuum presses the lip onto the surface with F = Δp π r² (Dex-Net 3.0's suction force). A load of pull P along the
cup's axis leaves N = F − P for the lip. Coulomb's friction of the lip holds shear S and torsion T together where
(S / μN)² + (T / μ N r)² ≤ 1 (an ellipsoid, as of Howe and Cutkosky 1996). A moment M across the axis makes the lip's
line load q(φ) = N / 2πr + M cos φ / π r²: nowhere is the lip lifted while M ≤ N r / 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from morphit_ros.geometry.transforms import Array
from morphit_ros.grasping.suction.cup import SuctionCup


@dataclass(frozen=True)
class CupLoad:
    """A load, and how many times it would be held.

    Attributes:
        pull: along the axis away from the surface, negative where the load presses onto the cup [N].
        shear: across the axis [N].
        moment: across the axis, about the middle of the lip [N m].
        torsion: about the axis [N m].
        times: largest multiple of the load that is held; infinite without a load.
        limit: what ends it: pull, shear or moment.
    """

    pull: float
    shear: float
    moment: float
    torsion: float
    times: float
    limit: str


def cup_load(cup: SuctionCup, center: Array, axis: Array, force: Array, at: Array, friction: float) -> CupLoad:
    """A force on the object.

    Args:
        cup: that is sealed.
        center: (3,) middle of the lip [m].
        axis: (3,) unit vector from the cup into the object.
        force: (3,) that acts on the object [N].
        at: (3,) where it acts [m].
        friction: of the lip on the surface.
    """
    return wrench_load(cup, axis, force, np.cross(at - center, force), friction)


def wrench_load(cup: SuctionCup, axis: Array, force: Array, torque: Array, friction: float) -> CupLoad:
    """Force (3,) and torque (3,) about the middle of the lip on the object [N], [N m]; others as of `cup_load`."""
    pull = float(force @ axis)
    shear = float(np.linalg.norm(force - pull * axis))
    torsion = abs(float(torque @ axis))
    moment = float(np.linalg.norm(torque - (torque @ axis) * axis))
    r, press = cup.cup_radius, cup.force
    # Each bound is linear in the multiple s: s a ≤ b (F − s P).
    needs = {
        "pull": (max(pull, 0.0), press),
        "shear": (math.hypot(shear, torsion / r) + friction * pull, friction * press),
        "moment": (moment + 0.5 * r * pull, 0.5 * r * press),
    }
    multiples = {name: held / need if need > 1e-12 else math.inf for name, (need, held) in needs.items()}
    limit = min(multiples, key=lambda name: multiples[name])
    return CupLoad(pull, shear, moment, torsion, multiples[limit], limit)
