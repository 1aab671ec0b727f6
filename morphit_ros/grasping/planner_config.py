"""Parameters of the planner."""

from __future__ import annotations

from dataclasses import dataclass

from morphit_ros.configuration import Config, nested, parameter
from morphit_ros.grasping.fitting.disf import DisfConfig
from morphit_ros.grasping.scoring.quality import ScoreWeights


@dataclass(frozen=True)
class PlannerConfig(Config):
    """Multi-start planning."""

    max_grasps: int = parameter(20, "Grasps returned at most", minimum=1, maximum=1000)
    pairs: int = parameter(800, "Seeds of antipodal pairs in a round", minimum=10, maximum=100000)
    max_starts: int = parameter(3000, "Starts that a round fits at most", minimum=1, maximum=1000000)
    rounds: int = parameter(
        4, "Rounds of starts at most; a round follows while no grasp is good", minimum=1, maximum=100
    )
    good_score: float = parameter(0.65, "Score of a grasp that ends the search", minimum=0.0, maximum=1.0)
    approach_angles: int = parameter(12, "Approach directions about each closing direction", minimum=1, maximum=72)
    max_approach_tilt: float = parameter(
        100.0,
        "Largest angle between approach and preferred approach, if there is one [deg]",
        minimum=0.0,
        maximum=180.0,
    )
    opposing_angle: float = parameter(
        35.0, "Largest deviation of a pair's normals from opposite [deg]", minimum=1.0, maximum=80.0
    )
    friction: float = parameter(0.5, "Friction coefficient that grasps must hold with", minimum=0.05, maximum=2.0)
    mass: float = parameter(0.0, "Mass of the object, 0 where it is not known [kg]", minimum=0.0, maximum=100.0)
    assumed_mass: float = parameter(0.5, "Mass of an object of unknown mass [kg]", minimum=0.001, maximum=100.0)
    opening_margin: float = parameter(
        0.008, "Free width beside the object on each side while approaching [m]", minimum=0.0, maximum=0.05
    )
    min_opening_margin: float = parameter(
        0.0015, "Least free width on each side; below it the object is too wide [m]", minimum=0.0, maximum=0.05
    )
    min_width: float = parameter(0.001, "Thinner pairs of surfaces are not gripped [m]", minimum=0.0, maximum=0.1)
    min_width_estimated: float = parameter(
        0.005,
        "The same where normals were estimated: the two sides of one noisy layer may get opposite signs [m]",
        minimum=0.0,
        maximum=0.1,
    )
    pregrasp_distance: float = parameter(
        0.10, "Least length of the straight approach, so far checked for collisions [m]", minimum=0.0, maximum=0.5
    )
    table_clearance: float = parameter(
        0.003,
        "Least height of palm and fingers above the table; lower things are gripped with a third of their height [m]",
        minimum=0.0,
        maximum=0.05,
    )
    min_clearance: float = parameter(
        0.0,
        "Least distance of the open gripper by the distance function, where one is given; negative for shapes that "
        "bulge beyond the object [m]",
        minimum=-0.05,
        maximum=0.1,
    )
    contact_tolerance: float = parameter(
        0.003, "Depth to which points may lie behind the pad plane (noise, compliance) [m]", minimum=0.0, maximum=0.02
    )
    allowed_hits: int = parameter(3, "Points inside palm or fingers that count as noise", minimum=0, maximum=1000)
    contact_area: float = parameter(2e-4, "Contact area that counts as full [m^2]", minimum=1e-6, maximum=0.01)
    min_overlap: float = parameter(
        0.1, "Least area that both pads press, as a share of the full one", minimum=0.0, maximum=1.0
    )
    robust_candidates: int = parameter(
        150, "The best candidates, which are tried with errors of pose and shape", minimum=1, maximum=100000
    )
    position_error: float = parameter(
        0.003, "Error of the position that a robust grasp survives [m]", minimum=0.0, maximum=0.05
    )
    angle_error: float = parameter(4.0, "The same of the orientation [deg]", minimum=0.0, maximum=45.0)
    center_error: float = parameter(
        0.005, "Error of the centre of mass that the certified hold allows for [m]", minimum=0.0, maximum=0.5
    )
    mass_error: float = parameter(
        0.2, "By this share the object may be heavier for the certified hold", minimum=0.0, maximum=10.0
    )
    suppression_distance: float = parameter(
        0.012, "Of grasps closer than this and the angle only the best is kept [m]", minimum=0.0, maximum=0.5
    )
    suppression_angle: float = parameter(25.0, "See suppression_distance [deg]", minimum=0.0, maximum=180.0)
    max_points: int = parameter(3000, "Larger clouds are thinned at random", minimum=100, maximum=1000000)
    min_points: int = parameter(30, "Clouds with fewer finite points are refused", minimum=10, maximum=100000)
    normals: str = parameter(
        "auto",
        "Given normals, normals estimated anew, or given ones unless they are missing or do not point outwards",
        choices=("auto", "given", "estimate"),
    )
    smoothing_radius: float = parameter(
        0.006, "Normals are averaged over neighbours within it; 0 for none [m]", minimum=0.0, maximum=0.05
    )
    complete: bool = parameter(True, "Extrude unseen sides down to the table, if there is one")
    unseen: str = parameter(
        "free",
        "Space that no camera saw, given or concluded from the cloud: free, or occupied and kept clear of",
        choices=("free", "occupied"),
    )
    unseen_last: bool = parameter(False, "Rank grasps that touch sides that no camera saw after all others")
    assumed_load: bool = parameter(
        True,
        "Of what nobody has weighed rank grasps by what hard pads hold of the assumed mass; not in heaps, where the "
        "centre of what shows is not the object's",
    )
    workers: int = parameter(2, "Threads", minimum=1, maximum=64)
    disf: DisfConfig = nested(DisfConfig)
    weights: ScoreWeights = nested(ScoreWeights)
