"""Settings of the grasp sequence."""

from __future__ import annotations

from dataclasses import dataclass

from morphit_ros.configuration import Config, nested, parameter

# The greatest quasi-static force on a person's hand and fingers by ISO/TS 15066:2016, annex A, table A.2 [N].
HAND_FORCE = 140.0


@dataclass(frozen=True)
class ProbeConfig(Config):
    """The close-probing test: close gently, look at what the fingers meet, and only then press."""

    enabled: bool = parameter(True, "Probe before closing with the full force")
    force: float = parameter(
        10.0, "Force of the probe, within the gripper's least and largest [N]", minimum=0.1, maximum=1000.0
    )
    speed: float = parameter(
        0.04,
        "Speed of the aperture while probing, by small steps of the command; 0: one command at the gripper's own "
        "speed, as always with command_interface actions [m/s]",
        minimum=0.0,
        maximum=0.5,
    )
    too_wide: float = parameter(
        0.012,
        "Fingers stopped this much before the planned aperture meet something else [m]",
        minimum=1e-3,
        maximum=0.1,
    )
    too_narrow: float = parameter(
        0.025,
        "Fingers stopped this much beyond the planned aperture hold but an edge; objects that turn to lie flat between "
        "the pads narrow too, 90 mm long ones by 16 mm for 10° [m]",
        minimum=1e-3,
        maximum=0.1,
    )
    reopen: float = parameter(
        0.006, "After an inconsistent probe the fingers reopen this much and probe again [m]", minimum=0.0, maximum=0.05
    )
    repeats: int = parameter(1, "How often an inconsistent probe is repeated", minimum=0, maximum=5)


@dataclass(frozen=True)
class ContactConfig(Config):
    """What counts as an unexpected contact on the way to the object."""

    enabled: bool = parameter(True, "Stop at an unexpected contact during pre-grasp and approach")
    tracking_floor: float = parameter(
        0.015, "Deviation of a joint that is never a contact, whatever was learned [rad]", minimum=1e-3, maximum=0.5
    )
    tracking_first: float = parameter(
        0.05, "Deviation that counts as contact before a free motion was seen [rad]", minimum=1e-3, maximum=0.5
    )
    effort_floor: float = parameter(
        6.0,
        "Change of a joint's effort that is never a contact [N m, or the unit of the joint states]",
        minimum=0.0,
        maximum=1000.0,
    )
    factor: float = parameter(
        2.5, "Contact begins at this multiple of what free motion showed", minimum=1.1, maximum=100.0
    )
    lag_margin: float = parameter(
        0.06, "The arm may fall back behind its lag at the start by this much [s]", minimum=0.0, maximum=2.0
    )
    finger_bound: float = parameter(
        0.003, "Displacement of fingers that were not told to move [m]", minimum=2e-4, maximum=0.05
    )


@dataclass(frozen=True)
class SlipConfig(Config):
    """What counts as losing hold, and how it is looked for before the object is high above the table."""

    test_height: float = parameter(
        0.03, "Height of the test lift before the lift, 0 for none [m]", minimum=0.0, maximum=0.2
    )
    test_time: float = parameter(0.5, "Time to look at the fingers after the test lift [s]", minimum=0.0, maximum=10.0)
    margin: float = parameter(
        0.006, "Change of the aperture since the grasp that counts as slip [m]", minimum=1e-3, maximum=0.05
    )
    rate: float = parameter(0.004, "Drift of the aperture that counts as slip [m/s]", minimum=1e-4, maximum=0.5)
    settle_time: float = parameter(
        0.8,
        "For so long after it has left the table an object may turn to lie flat between the pads: no drift counts [s]",
        minimum=0.0,
        maximum=10.0,
    )
    window: float = parameter(0.4, "Time over which the drift is measured [s]", minimum=0.1, maximum=5.0)
    effort_share: float = parameter(
        0.3,
        "Slip where the fingers' effort falls below this share of that at the grasp; 0: not looked at",
        minimum=0.0,
        maximum=0.95,
    )


@dataclass(frozen=True)
class SuctionConfig(Config):
    """How a suction cup is pressed on, and when it has lost what it held."""

    press_speed: float = parameter(
        0.02, "Speed of the last way along the cup's axis, which presses its lip [m/s]", minimum=1e-3, maximum=0.2
    )
    seal_time: float = parameter(
        0.5, "Time to wait for the vacuum once the lip is pressed [s]", minimum=0.02, maximum=10.0
    )
    press_further: float = parameter(
        0.003,
        "Where no vacuum comes the cup is pressed further, by half of this twice, within its stroke: clouds err [m]",
        minimum=0.0,
        maximum=0.02,
    )
    lost_time: float = parameter(
        0.06, "Without vacuum for this long the object counts as lost [s]", minimum=0.0, maximum=2.0
    )
    release_time: float = parameter(
        2.0, "Time within which the vacuum is gone once it is switched off [s]", minimum=0.05, maximum=30.0
    )


@dataclass(frozen=True)
class WeighConfig(Config):
    """Weighing on the test lift, and what follows where the weight pulls beside the grasp."""

    source: str = parameter(
        "none",
        "What tells the load: the efforts of the joint states in N m, without what carries the arm itself (the "
        "simulation, tau_ext of franka) or with it (total_efforts: the description has to give masses), or a force "
        "sensor at the wrist (wrench: the topic of that name; UR's tool0); none: nothing is weighed. The currents of "
        "UR arms are no efforts in N m",
        choices=("none", "efforts", "total_efforts", "wrench"),
    )
    tare_time: float = parameter(
        0.4, "Rest before the approach, to read the empty hand in the last part of it [s]", minimum=0.05, maximum=5.0
    )
    share: float = parameter(
        1.0,
        "Set down and grasp nearer the centre of mass where the weight takes more than this share of the torque that "
        "the pads hold about their normal, if another attempt is allowed",
        minimum=0.05,
        maximum=10.0,
    )


@dataclass(frozen=True)
class SequenceConfig(Config):
    """Speeds, tolerances and time limits of a pick."""

    approach_speed: float = parameter(0.08, "Speed of the straight approach [m/s]", minimum=0.005, maximum=0.5)
    lift_speed: float = parameter(0.1, "Speed of the lift [m/s]", minimum=0.005, maximum=0.5)
    carry_acceleration: float = parameter(
        1.0,
        "What the hand carries is accelerated by no more than this, on the way to its place and home: what hangs "
        "freely between the pads swings by up to 2 a / g, 12° [m/s²]",
        minimum=0.1,
        maximum=100.0,
    )
    lift_height: float = parameter(0.2, "Height of the lift [m]", minimum=0.01, maximum=1.0)
    hold_time: float = parameter(1.0, "The object must be held this long after the lift [s]", minimum=0.0, maximum=60.0)
    close_bias: float = parameter(0.02, "The fingers are sent this much beyond contact [m]", minimum=0.0, maximum=0.1)
    max_effort: float = parameter(
        0.0,
        f"Closing force [N]; 0 means the gripper's greatest, but at most {HAND_FORCE:g} N, which ISO/TS 15066 allows "
        "on a hand and fingers: more only if it is named here",
        minimum=0.0,
        maximum=1000.0,
    )
    stall_margin: float = parameter(
        0.0015,
        "The fingers hold something if they stop this much short of where they were sent; less for thin things [m]",
        minimum=1e-4,
        maximum=0.02,
    )
    open_tolerance: float = parameter(0.003, "Accepted error of the opening [m]", minimum=1e-4, maximum=0.02)
    gripper_timeout: float = parameter(4.0, "Time limit of a finger motion [s]", minimum=0.1, maximum=60.0)
    rest_aperture: float = parameter(5e-4, "Change of the aperture that counts as rest [m]", minimum=1e-5, maximum=0.01)
    rest_time: float = parameter(0.2, "The fingers rest if unchanged for this long [s]", minimum=0.02, maximum=5.0)
    goal_tolerance: float = parameter(
        0.01,
        "Joint error at the end of a motion; with more than start_tolerance of motion_gate that refuses the next [rad]",
        minimum=1e-4,
        maximum=0.5,
    )
    rest_speed: float = parameter(0.05, "Joint speed that counts as rest [rad/s]", minimum=1e-4, maximum=1.0)
    goal_margin: float = parameter(2.0, "Time limit beyond the duration of a motion [s]", minimum=0.1, maximum=60.0)
    tracking_bound: float = parameter(
        0.15, "Largest deviation of a joint from its trajectory [rad]", minimum=0.005, maximum=3.0
    )
    tracking_delay: float = parameter(
        0.3, "Lag of the arm, and of the fingers while they probe, that is accepted [s]", minimum=0.0, maximum=5.0
    )
    state_timeout: float = parameter(0.5, "Oldest joint state that is acted upon [s]", minimum=0.02, maximum=10.0)
    displacement_bound: float = parameter(
        0.015, "An object that moved further before the approach is not approached [m]", minimum=1e-3, maximum=1.0
    )
    regrasps: int = parameter(1, "Further attempts after a failed one", minimum=0, maximum=10)
    regrasp_distance: float = parameter(
        0.015,
        "Grasps as near as this to a failed one, and turned by less than regrasp_angle, are not tried [m]",
        minimum=0.0,
        maximum=0.5,
    )
    regrasp_angle: float = parameter(
        0.35,
        "Grasps turned by less than this from a failed one are not tried if as near [rad]",
        minimum=0.0,
        maximum=3.15,
    )
    probe: ProbeConfig = nested(ProbeConfig)
    contact: ContactConfig = nested(ContactConfig)
    slip: SlipConfig = nested(SlipConfig)
    suction: SuctionConfig = nested(SuctionConfig)
    weigh: WeighConfig = nested(WeighConfig)
