"""Parameters of the perception pipeline."""

from __future__ import annotations

from dataclasses import dataclass

from morphit_ros.configuration import Config, nested, parameter
from morphit_ros.errors import InvalidInputError

TARGET_RULES = ("largest", "nearest", "index")


@dataclass(frozen=True)
class CropConfig(Config):
    """Which measurements are used at all."""

    left_min_range: float = parameter(0.15, "Smallest depth used from the left camera [m]", minimum=0.0, maximum=20.0)
    left_max_range: float = parameter(1.5, "Largest depth used from the left camera [m]", minimum=0.01, maximum=20.0)
    right_min_range: float = parameter(0.15, "Smallest depth used from the right camera [m]", minimum=0.0, maximum=20.0)
    right_max_range: float = parameter(1.5, "Largest depth used from the right camera [m]", minimum=0.01, maximum=20.0)
    workspace_min: tuple[float, ...] = parameter(
        (-1.0, -1.0, -0.2), "Lower corner of the workspace, world frame [m]", minimum=-50.0, maximum=50.0, length=3
    )
    workspace_max: tuple[float, ...] = parameter(
        (1.0, 1.0, 1.0), "Upper corner of the workspace, world frame [m]", minimum=-50.0, maximum=50.0, length=3
    )
    voxel_size: float = parameter(0.003, "Edge of a voxel; each keeps one point [m]", minimum=5e-4, maximum=0.02)
    robot_padding: float = parameter(
        0.015, "Points this close to a sphere of the robot are the robot's [m]", minimum=0.0, maximum=0.2
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for side in ("left", "right"):
            low, high = getattr(self, f"{side}_min_range"), getattr(self, f"{side}_max_range")
            if low >= high:
                raise InvalidInputError(f"{side}_max_range", high, f"above {side}_min_range, {low:g}")
        for axis, low, high in zip("xyz", self.workspace_min, self.workspace_max, strict=True):
            if low >= high:
                raise InvalidInputError("workspace_max", f"{axis} = {high:g}", f"above workspace_min's {low:g}")


@dataclass(frozen=True)
class SurfaceConfig(Config):
    """Outliers and normals."""

    radius: float = parameter(0.009, "Radius of the neighbourhood of a point [m]", minimum=1e-3, maximum=0.05)
    min_neighbors: int = parameter(
        8, "A point with fewer points within the radius is an outlier", minimum=3, maximum=200
    )


@dataclass(frozen=True)
class RegistrationConfig(Config):
    """How the right camera's cloud is brought to the left one's."""

    refine: bool = parameter(True, "Refine known extrinsics by point-to-plane ICP")
    iterations: int = parameter(12, "Largest number of ICP iterations at each distance", minimum=1, maximum=200)
    capture_distance: float = parameter(
        0.04, "Largest misalignment that ICP can recover from [m]", minimum=2e-3, maximum=0.2
    )
    max_residual: float = parameter(
        0.003, "Largest accepted RMS point-to-plane distance between the views [m]", minimum=1e-4, maximum=0.05
    )
    max_correction: float = parameter(
        0.01,
        "Largest accepted shift by the refinement of known extrinsics [m]",
        minimum=0.0,
        maximum=0.2,
    )
    max_correction_angle: float = parameter(
        0.035, "Largest accepted turn by the refinement of known extrinsics [rad]", minimum=0.0, maximum=0.5
    )
    min_overlap: float = parameter(
        0.25,
        "Smallest accepted part of each view's objects that the other confirms, without extrinsics",
        minimum=0.0,
        maximum=1.0,
    )
    max_contradicted: float = parameter(
        0.03,
        "Largest accepted part of a view's objects where the other camera saw past them, without extrinsics",
        minimum=0.0,
        maximum=1.0,
    )
    # Of a symmetric object, a wrong pose may let the views share more than the right one does.
    max_rival: float = parameter(
        0.55,
        "A different pose that explains this part of what the best one does makes it ambiguous, without extrinsics",
        minimum=0.0,
        maximum=1.0,
    )
    # 0.5° at three standard deviations.
    max_turn_spread: float = parameter(
        0.0029,
        "Largest accepted standard deviation of the turn that the overlap leaves, without extrinsics [rad]",
        minimum=1e-5,
        maximum=0.1,
    )
    max_shift_spread: float = parameter(
        0.0005,
        "Largest accepted standard deviation of the shift that the overlap leaves, without extrinsics [m]",
        minimum=1e-6,
        maximum=0.01,
    )


@dataclass(frozen=True)
class TableConfig(Config):
    """The support plane."""

    tolerance: float = parameter(0.004, "Points this close to the plane lie on it [m]", minimum=5e-4, maximum=0.05)
    min_area: float = parameter(0.03, "Smallest visible area of a table [m²]", minimum=1e-4, maximum=10.0)
    gravity_known: bool = parameter(True, "World z points up, so only a horizontal plane is a table")
    max_tilt: float = parameter(0.1, "Largest angle of a table to the horizontal [rad]", minimum=0.001, maximum=1.5)
    iterations: int = parameter(400, "Number of planes tried", minimum=10, maximum=100_000)
    margin: float = parameter(
        0.05, "Objects are looked for this far beyond the visible part of the table [m]", minimum=0.0, maximum=1.0
    )


@dataclass(frozen=True)
class ObjectConfig(Config):
    """What counts as an object."""

    min_height: float = parameter(0.005, "Lower points belong to the table [m]", minimum=1e-3, maximum=0.1)
    max_height: float = parameter(0.5, "Higher points above the table are ignored [m]", minimum=0.01, maximum=5.0)
    link_distance: float = parameter(
        0.01, "Points closer than this belong to one object [m]", minimum=1e-3, maximum=0.1
    )
    min_points: int = parameter(100, "Smallest number of points of an object", minimum=10, maximum=100_000)
    split_touching: bool = parameter(
        False, "Split a cluster along concave seams, which joined parts of one object may have as well"
    )
    seam_angle: float = parameter(
        0.35, "Concave angle between two faces from which they may be two objects [rad]", minimum=0.1, maximum=1.5
    )


@dataclass(frozen=True)
class TargetConfig(Config):
    """Which object is the target."""

    rule: str = parameter("largest", "How the target is chosen", choices=TARGET_RULES, read_only=False)
    point: tuple[float, ...] = parameter(
        (0.0, 0.0, 0.0),
        "For rule 'nearest': this point, world frame [m]",
        minimum=-50.0,
        maximum=50.0,
        length=3,
        read_only=False,
    )
    index: int = parameter(
        0, "For rule 'index': place in the list of objects, 0 is the largest", minimum=0, maximum=1000, read_only=False
    )


@dataclass(frozen=True)
class PerceptionConfig(Config):
    """All parameters of `perceive`."""

    world_frame: str = parameter("world", "Frame of the scene")
    sync_tolerance: float = parameter(
        0.02, "Largest difference between the stamps of the two clouds [s]", minimum=0.0, maximum=10.0
    )
    allow_single_view: bool = parameter(False, "Whether one camera is enough")
    require_table: bool = parameter(True, "Whether a scene without a table is a failure")
    crop: CropConfig = nested(CropConfig)
    surface: SurfaceConfig = nested(SurfaceConfig)
    registration: RegistrationConfig = nested(RegistrationConfig)
    table: TableConfig = nested(TableConfig)
    objects: ObjectConfig = nested(ObjectConfig)
    target: TargetConfig = nested(TargetConfig)
