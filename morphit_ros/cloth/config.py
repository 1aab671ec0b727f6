"""What a cloth is made of, and how it is computed."""

from __future__ import annotations

from dataclasses import dataclass

from morphit_ros.configuration import Config, parameter

# A node has a bit for each shape near it.
MOST_SHAPES = 60


@dataclass(frozen=True)
class ClothConfig(Config):
    """A rectangular cloth and its motion, in steps of a picture each.

    The defaults are a thin cotton of 1 m by 1 m. Stretching, shear and bending are those of the material, whatever the
    pitch; they soften where the time step is too long for them.
    """

    rows: int = parameter(100, "Nodes along y", minimum=2, maximum=400)
    cols: int = parameter(100, "Nodes along x", minimum=2, maximum=400)
    pitch: float = parameter(0.01, "Distance of neighbouring nodes [m]", minimum=1e-4, maximum=1.0)
    clearance: float = parameter(
        0.05, "Between the highest shape and the cloth at first [m]", minimum=0.0, maximum=10.0
    )
    density: float = parameter(0.2, "Mass by area [kg/m²]", minimum=1e-3, maximum=100.0)
    stretch_stiffness: float = parameter(
        2000.0, "Tension by strain along rows and columns [N/m]", minimum=1.0, maximum=1e8
    )
    shear_stiffness: float = parameter(20.0, "Tension by strain along diagonals [N/m]", minimum=0.0, maximum=1e8)
    shear_limit: float = parameter(0.1, "Strain of diagonals that none exceeds for long", minimum=0.0, maximum=0.4)
    bending_stiffness: float = parameter(2e-5, "Moment by curvature and width [N m]", minimum=0.0, maximum=100.0)
    damping: float = parameter(
        0.5, "Share of the velocity that air takes in a second [1/s]", minimum=0.0, maximum=100.0
    )
    friction: float = parameter(0.4, "Coulomb's, of cloth on shapes and floor", minimum=0.0, maximum=10.0)
    gap: float = parameter(0.001, "Of nodes from shapes and floor [m]", minimum=1e-5, maximum=0.1)
    floor: bool = parameter(True, "A floor at z = 0, which carries the cloth beside the shapes")
    gravity: float = parameter(9.81, "Downwards [m/s²]", minimum=0.0, maximum=100.0)
    contact: str = parameter(
        "implicit",
        "By the inside-outside function and its slope, or by certified closest points with proven ways of the nodes",
        choices=("implicit", "exact"),
    )
    self_collision: bool = parameter(False, "Whether the cloth meets itself")
    time_step: float = parameter(1.0 / 60.0, "Of one picture [s]", minimum=1e-4, maximum=0.1)
    substeps: int = parameter(20, "Steps of the motion in one picture", minimum=1, maximum=200)
