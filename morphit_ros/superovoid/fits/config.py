"""Settings of the fit of superovoids to surfaces."""

from __future__ import annotations

from dataclasses import dataclass

from morphit_ros.configuration import Config, nested, parameter
from morphit_ros.errors import InvalidInputError

FAMILIES = ("ellipsoid", "superellipsoid", "superovoid")
MODES = ("balanced", "outer")
LOSSES = ("auto", "squares", "huber", "geman_mcclure")


@dataclass(frozen=True)
class SuperovoidFitConfig(Config):
    """How one superovoid is fitted."""

    family: str = parameter(
        "superovoid",
        "Which numbers are free: ellipsoid (axes), superellipsoid (and exponents), superovoid (and tapering)",
        choices=FAMILIES,
    )
    mode: str = parameter(
        "balanced",
        "balanced: nearest to the surface on both sides; outer: holds every vertex, and for that convex",
        choices=MODES,
    )
    convex: bool = parameter(
        False, "Only convex shapes: one tapering for both directions, and exponents within what is convex with it"
    )
    loss: str = parameter(
        "auto",
        "What a distance costs: squares, huber (linear beyond huber_width), geman_mcclure (bounded: points far off "
        "hardly count; width from the spread of the distances), auto: huber for meshes, geman_mcclure for clouds",
        choices=LOSSES,
    )
    huber_width: float = parameter(
        0.1, "Distance from which huber is linear, relative to the RMS distance of the points from their centroid",
        minimum=1e-4, maximum=10.0,
    )  # fmt: skip
    samples: int = parameter(800, "Points of the surface that the fit sees at the end", minimum=30, maximum=100_000)
    starts: int = parameter(
        24, "Starts: three principal axes as tapering axis, two turns about each, then random turns", minimum=3,
        maximum=1000,
    )  # fmt: skip
    iterations: int = parameter(60, "Steps of the last descent at most", minimum=1, maximum=10_000)
    min_squareness: float = parameter(0.2, "Least exponent (0.2: nearly a box)", minimum=0.1, maximum=1.0)
    max_squareness: float = parameter(1.8, "Greatest exponent (2: edges of an octahedron)", minimum=1.0, maximum=1.9)
    max_tapering: float = parameter(0.5, "Greatest |tapering|", minimum=0.0, maximum=0.5)


@dataclass(frozen=True)
class LinkFitConfig(Config):
    """How many superovoids a link gets, and how each is fitted."""

    fit: SuperovoidFitConfig = nested(SuperovoidFitConfig)
    max_count: int = parameter(4, "Superovoids of a link at most", minimum=1, maximum=64)
    tolerance: float = parameter(
        0.02, "RMS surface distance that is good enough, relative to the diagonal of the link's box", minimum=0.0,
        maximum=1.0,
    )  # fmt: skip
    gain: float = parameter(
        0.2, "Share of the RMS surface distance that one more superovoid must take away", minimum=0.0, maximum=1.0
    )

    d_max: float = parameter(
        0.0, "Greatest distance between link and shapes, both ways, proven [m]: as many shapes as it takes, within "
        "max_count; 0: as many as tolerance and gain say", minimum=0.0, maximum=1.0,
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.fit.loss == "geman_mcclure" and self.max_count > 1:
            # A bounded loss takes what one shape misses for outliers, and a second shape would never pay.
            raise InvalidInputError(
                "fit.loss", "'geman_mcclure' with several shapes a link", "auto, squares or huber", "Or max_count=1."
            )
