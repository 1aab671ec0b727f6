"""What is done to a running pick, when, and what must follow: the cells of the table of faults, and their judgement."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

# An arm rests below this speed [rad/s], and has to within this time of a fault [s].
REST_SPEED = 0.02
LONGEST_STOP = 0.1
# Faster than this when the fault comes, an arm counts as moving [rad/s].
MOVING_SPEED = 0.05

# Phases as `job_state` names them. Those in which the arm moves come with a fault only once it does.
PHASES = ("segment", "plan_grasp", "pregrasp", "approach", "close", "lift", "verify")
MOVING_PHASES = ("pregrasp", "approach", "lift")
NODES = ("scene_perception", "grasp_planning", "grasp_execution", "motion_gate", "robot_spheres", "pick_client")
# Without these no motion may go on.
MOVERS = ("grasp_execution", "motion_gate", "pick_client")


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong.

    Attributes:
        name: of the fault; `kill` and `stop` with the node behind a blank.
        words: regular expression for the true reason; empty where nothing has to be told.
        stops: whether the arm has to rest.
        phases: in which it is tried; `full` tries all.
    """

    name: str
    words: str
    stops: bool = True
    phases: tuple[str, ...] = ("pregrasp",)


def _node_faults() -> list[Fault]:
    faults = []
    for verb, how in (("kill", "has died"), ("stop", "is stopped")):
        for node in NODES:
            needed = {"scene_perception": "segment", "grasp_planning": "plan_grasp"}.get(node)
            phases = MOVING_PHASES if node in MOVERS else ("pregrasp",)
            if node == "grasp_execution":
                phases = ("segment", "plan_grasp", *phases, "close", "verify")
            if needed is not None:
                # Whoever waits for its answer is told at once.
                faults.append(Fault(f"{verb} {node}", rf"{node}.*({how}|silent|gone)", False, (needed,)))
            words = rf"{node} ({how}|has been silent)|no heartbeat of (the client )?/{node}" if node in MOVERS else ""
            faults.append(Fault(f"{verb} {node}", words, node in MOVERS, phases))
    return faults


_UNUSABLE = "no joint state that can be used"
FAULTS = (
    *_node_faults(),
    Fault("clock forwards", r"clock jumped by \+", phases=MOVING_PHASES),
    Fault("clock backwards", r"clock jumped by -", phases=MOVING_PHASES),
    Fault("clock stands still", "clock stands still"),
    Fault("NaN joint state", f"{_UNUSABLE}.*finite", phases=MOVING_PHASES),
    Fault("joint out of limits", "joint1 at [-0-9.]+|is reported to have jumped", phases=("pregrasp", "lift")),
    Fault("joint states too short", f"{_UNUSABLE}.*one for each"),
    Fault("no joint states", f"{_UNUSABLE}|no joint state for"),
    Fault("frozen joint states", "off its trajectory|does not move|stands still"),
    Fault("another robot_description", "robot_description", phases=("plan_grasp", "pregrasp", "lift")),
    Fault("second pick", "another is running", False, ("segment", "pregrasp", "lift")),
    Fault("cancel", "cancel", phases=("plan_grasp", "pregrasp", "approach", "lift")),
    Fault("protective stop", "off its trajectory|past this gate|protective", phases=MOVING_PHASES),
    Fault("malformed cloud", "point_step|4294967295", False, ("segment", "pregrasp")),
)  # fmt: skip

# With the job's own supervisor: its end, and what it says. Perception and planning are started again.
_ENDED = "ended unexpectedly with signal SIGKILL"
SUPERVISED = (
    *(Fault(f"kill {node}", rf"\[{node}\].*signal SIGKILL.*starts again", False) for node in NODES[:2]),
    *(Fault(f"kill {node}", rf"{node} (ended unexpectedly|ended) with signal SIGKILL") for node in NODES[2:]),
    Fault("kill workcell_sim", f"workcell_sim {_ENDED}"),
    *(Fault(f"stop {node}", rf"{node} is stopped|no heartbeat of (the client )?/{node}|ended") for node in MOVERS),
    Fault("interrupt supervisor", "ended by SIGINT"),
    Fault("kill supervisor", ""),
)


@dataclass(frozen=True)
class Cell:
    """A fault in a phase, below the job's own supervisor or without it."""

    fault: Fault
    phase: str
    supervised: bool = False

    @property
    def name(self) -> str:
        return f"{self.fault.name} / {self.phase}{' / supervised' if self.supervised else ''}"

    @property
    def touches_object(self) -> bool:
        """Whether the object may have been moved by then: the next cell needs a new one."""
        return self.phase not in PHASES[:3]


# A node that has died, one that was woken, something said by a stranger, a clock and joint states.
_QUICK = (
    "kill grasp_execution / pregrasp", "stop motion_gate / pregrasp", "NaN joint state / pregrasp",
    "clock backwards / pregrasp", "kill motion_gate / pregrasp / supervised",
)  # fmt: skip


def cells(full: bool = False, quick: bool = False, only: str = "") -> list[Cell]:
    """The cells to try, in the order of the table.

    Args:
        full: every fault in every phase.
        quick: a handful.
        only: part of the names, as a regular expression.
    """
    found = [Cell(fault, phase) for fault in FAULTS for phase in fault.phases]
    if full:
        # Of faults with other words in some phases the later entry is that of all others.
        rest = {(fault.name, phase): Cell(fault, phase) for fault in FAULTS for phase in PHASES}
        found += [cell for (name, phase), cell in rest.items() if f"{name} / {phase}" not in {c.name for c in found}]
    found += [Cell(fault, "pregrasp", supervised=True) for fault in SUPERVISED]
    if quick:
        found = [cell for cell in found if cell.name in _QUICK]
    return [cell for cell in found if re.search(only, cell.name)]


@dataclass
class CellRecord:
    """What followed a fault.

    Attributes:
        name: of the cell.
        reached: whether the phase came, and with it the fault.
        speed: greatest of the arm's joints when the fault came [rad/s].
        wall_times, stamps, speeds: (N,) of each joint state since then: wall time since the fault [s], simulated time
            since the last state before it [s], greatest speed [rad/s].
        told: what the nodes said since then, each with who said it in front.
        recovery: how the way home went: "home", with the number of attempts if more than one, "not tried", or why not.
        moved_later: greatest speed after what was frozen was woken [rad/s].
        left: names of what was left behind after the job's end.
        load: processes that waited for a processor, mean of a minute.
        exit_status: of a supervised job.
        ended_after: time from the fault to the end of a supervised job [s].
    """

    name: str
    reached: bool = False
    speed: float = 0.0
    wall_times: list[float] = field(default_factory=list)
    stamps: list[float] = field(default_factory=list)
    speeds: list[float] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    recovery: str = "not tried"
    moved_later: float = 0.0
    left: list[str] = field(default_factory=list)
    load: float = 0.0
    exit_status: int | None = None
    ended_after: float | None = None


@dataclass(frozen=True)
class Judgement:
    """Whether a cell is as it should be.

    Attributes:
        stop_wall, stop_clock: time until the arm rested for good, by the wall and by the robot's clock [s]; NaN where
            it did not, 0 where it rested already.
        reason: who told the true reason and how; empty if nobody did.
        problems: what is not as it should be; empty: all is.
    """

    stop_wall: float
    stop_clock: float
    reason: str
    problems: tuple[str, ...]


def time_to_rest(times: Sequence[float], speeds: Sequence[float]) -> float:
    """Time of the first sample from which on all are below the speed of rest; NaN if the last one is not.

    Args:
        times: (N,) since the fault [s].
        speeds: (N,) greatest of the joints [rad/s].
    """
    moving = [number for number, speed in enumerate(speeds) if not speed < REST_SPEED]
    if not moving:
        return 0.0
    return times[moving[-1] + 1] if moving[-1] + 1 < len(times) else float("nan")


def judge(cell: Cell, record: CellRecord) -> Judgement:
    """Hold a record against what must follow the fault."""
    wall, clock = (time_to_rest(times, record.speeds) for times in (record.wall_times, record.stamps))
    words = cell.fault.words
    reason = next((text for text in record.told if words and re.search(words, text)), "")
    problems = []
    if not record.reached:
        return Judgement(wall, clock, reason, ("the phase was not reached",))
    if not record.speeds and not cell.supervised:
        problems.append("nothing was measured")
    # A supervised job ends its simulation too: a rest that was not seen until then says nothing of a robot.
    unseen = cell.supervised and record.ended_after is not None and wall != wall
    if cell.fault.stops and not wall <= LONGEST_STOP and not unseen:
        problems.append("moved on" if wall != wall else f"rested after {1e3 * wall:.0f} ms")
    if words and not reason:
        problems.append("true reason not told")
    if record.moved_later > MOVING_SPEED:
        problems.append(f"moved at {record.moved_later:.2f} rad/s when woken")
    if not record.recovery.startswith(("home", "not tried")):
        problems.append("no way home")
    if record.left:
        problems.append(f"left behind: {len(record.left)}")
    if cell.supervised and record.ended_after is None:
        problems.append("the job did not end")
    return Judgement(wall, clock, reason, tuple(problems))


def record_from(row: dict[str, Any]) -> CellRecord:
    """A record as it was written, a line of JSON."""
    return CellRecord(**row)
