"""When the arm may move: who must be heard, and what follows where somebody is not.

The state machine of the gate between planner and controller (node `motion_gate`). No ROS, no thread and no clock of its
own: whoever calls says what time it is. `test/execution/test_dead_man.py` goes through all orders of events.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from morphit_ros.configuration import Config, parameter


class Phase(enum.Enum):
    """What the gate has the arm do."""

    RESTING = "resting"
    MOVING = "moving"
    BRAKING = "braking"
    # At rest after a fault: nothing passes before the commander has said stop, which shows that it knows.
    STOPPED = "stopped"


class Order(enum.Enum):
    """What the controller is to be told after an event."""

    NOTHING = "nothing"
    FORWARD = "forward"
    STOP = "stop"
    BRAKE = "brake"


@dataclass(frozen=True)
class DeadManConfig(Config):
    """How long the arm goes on without hearing from somebody."""

    heartbeat_timeout: float = parameter(
        0.06, "Silence of the commander or its client after which the arm brakes [s]", minimum=0.005, maximum=2.0
    )
    state_timeout: float = parameter(
        0.06,
        "Time, by the robot's clock, without a new joint state after which the arm brakes; at least two periods of the "
        "joint states [s]",
        minimum=0.005,
        maximum=2.0,
    )
    clock_timeout: float = parameter(
        0.06, "The arm brakes where joint states come so long while the clock stands still [s]",
        minimum=0.005, maximum=2.0,
    )  # fmt: skip
    silence_timeout: float = parameter(
        1.0, "Wall time without a joint state after which the arm brakes, whatever the robot's clock says [s]",
        minimum=0.01, maximum=60.0,
    )  # fmt: skip
    stop_time: float = parameter(
        0.04, "Shortest time that braking takes; longer where accelerations ask for it [s]", minimum=0.005, maximum=2.0
    )


# One joint state that cannot be used may be an accident; the next one of that kind is not.
_REFUSALS = 2
# After a pause of a simulation joint states and clock come in any order: so many more tell that the clock stands still.
_STATES = 2


class DeadManGate:
    """Lets commands pass while everybody is heard that must be.

    A client is whoever has sent a heartbeat, until it takes its leave. Only the commander is asked for while the arm
    rests: it may think for long, but not while something moves.

    Args:
        config: how long silence may be.

    Attributes:
        phase: the present one.
        reason: of the last fault; empty while there is none.
        clock_lost: whether that is the clock: what time it is cannot be told by it.
    """

    def __init__(self, config: DeadManConfig) -> None:
        self._config = config
        self.phase, self.reason, self.clock_lost = Phase.RESTING, "", False
        self._wall = self._clock = 0.0
        self._ends = 0.0
        self._commander = self._state_wall = self._state_clock = -1e9
        self._clock_advanced = 0.0
        self._clients: dict[str, float] = {}
        self._name = "the commander"
        self._states = self._refusals = 0
        self._doubt = self._refusal = ""

    def hear_commander(self, name: str = "") -> None:
        """A heartbeat of the commander, or a command, which is one too."""
        self._commander, self._name = self._wall, name or self._name

    def hear_client(self, name: str) -> None:
        """A heartbeat of a client."""
        self._clients[name] = self._wall

    def leave(self, name: str) -> None:
        """A client takes its leave: it is not asked for any longer."""
        self._clients.pop(name, None)

    def lose(self, name: str, how: str) -> Order:
        """The commander or a client is known to have ended: `how`."""
        if name == self._name:
            return self.fault(f"{name} {how}") if self.phase is Phase.MOVING else Order.NOTHING
        return self.fault(f"the client {name} {how}") if self._clients.pop(name, None) is not None else Order.NOTHING

    def hear_state(self) -> None:
        """A joint state that can be used and is newer than the last one."""
        self._state_wall, self._state_clock = self._wall, self._clock
        self._states += 1
        self._refusal, self._refusals = "", 0

    def refuse_state(self, why: str) -> None:
        """A joint state that cannot be used."""
        self._refusal = f": {why}"
        self._refusals += 1

    def command(self, problem: str, duration: float) -> Order:
        """A trajectory of a duration [s], and what speaks against it (empty: nothing)."""
        self.hear_commander()
        if self.phase in (Phase.BRAKING, Phase.STOPPED):
            # After a stop that was heard: who commands too early must learn that nothing came of it.
            self.reason = self.reason or "refused: the arm was still braking"
            return Order.NOTHING
        if cause := problem or self.missing():
            return self.fault(cause)
        self.phase, self._ends, self._doubt, self.clock_lost = Phase.MOVING, self._clock + duration, "", False
        return Order.FORWARD

    def stop(self) -> Order:
        """The commander says stop, whatever it knows of: faults that are over end with it."""
        self.hear_commander()
        self.reason = self._doubt = ""
        if self.phase is Phase.BRAKING:
            # It is on its way to rest, more gently than the controller's own stop.
            return Order.NOTHING
        self.phase = Phase.RESTING
        return Order.STOP

    def fault(self, reason: str) -> Order:
        """The arm must not go on."""
        if self.phase in (Phase.BRAKING, Phase.STOPPED):
            return Order.NOTHING
        moving = self.phase is Phase.MOVING
        self.reason, self._doubt = reason, ""
        # A client that is silent is told of once; another one follows when this has been heard.
        self._clients = {name: heard for name, heard in self._clients.items() if f" {name} " not in reason}
        self.phase, self._ends = Phase.BRAKING if moving else Phase.STOPPED, self._wall + self._config.stop_time
        return Order.BRAKE if moving else Order.NOTHING

    def brake_for(self, duration: float) -> None:
        """Braking, which an order has begun just now, takes so long [s]."""
        self._ends = self._wall + duration

    def tick(self, wall: float, clock: float, margin: float = 0.0) -> Order:
        """Time has passed.

        Args:
            wall: time that nothing stops [s].
            clock: time of the robot, simulated or not [s].
            margin: added to the end of a trajectory, for an arm that still moves [s].
        """
        jump = self._jump(wall - self._wall, clock - self._clock)
        if clock != self._clock:
            self._clock_advanced, self._states = wall, 0
        if self._clock == 0.0 < clock:
            # A clock that nobody had heard yet: what was measured before is as old as it is in wall time.
            self._state_clock = clock - (wall - self._state_wall)
        elif clock < self._clock:
            # What was measured before is of no time that can be told.
            self._state_clock = -1e9
        first, self._wall, self._clock = self._wall == 0.0, wall, clock
        if self.phase is Phase.BRAKING and wall >= self._ends:
            self.phase = Phase.STOPPED if self.reason else Phase.RESTING
            # For a controller that has refused to brake on the path.
            return Order.STOP
        if self.phase is Phase.MOVING:
            cause = self.missing()
            # One look may have been late itself, with the news still waiting behind it.
            doubted, self._doubt = self._doubt, cause
            if cause := ("" if first else jump) or (cause if doubted else ""):
                self.clock_lost = cause in (jump, self._still_clock())
                return self.fault(cause)
            if clock > self._ends + margin:
                self.phase = Phase.RESTING
        elif self.phase is Phase.RESTING:
            doubted, self._doubt = self._doubt, self._silent_client()
            if doubted and self._doubt:
                return self.fault(self._doubt)
        return Order.NOTHING

    def missing(self) -> str:
        """Whose silence keeps the arm from moving; empty if everybody is heard."""
        config, silence = self._config, self._wall - self._commander
        if silence > config.heartbeat_timeout:
            return f"no heartbeat of {self._name} for {silence:.3f} s: has it died?"
        if cause := self._silent_client():
            return cause
        silence, age = self._wall - self._state_wall, self._clock - self._state_clock
        if age > config.state_timeout or self._refusals >= _REFUSALS:
            return f"no joint state that can be used for {min(age, 1e3):.3f} s{self._refusal}"
        if silence > config.silence_timeout:
            return f"no joint state for {silence:.3f} s of wall time: is the robot's driver running?"
        return self._still_clock()

    def _still_clock(self) -> str:
        # Where the clock and the joint states stop together, a simulation stands still, and its arm with it.
        still = self._state_wall - self._clock_advanced
        stopped = still > self._config.clock_timeout and self._states > _STATES
        return f"the clock stands still for {still:.3f} s" if stopped else ""

    def _silent_client(self) -> str:
        for name, heard in self._clients.items():
            if (silence := self._wall - heard) > self._config.heartbeat_timeout:
                return f"no heartbeat of the client {name} for {silence:.3f} s: has it died?"
        return ""

    def _jump(self, wall: float, clock: float) -> str:
        # A simulation may run faster than time, by its realtime_factor, and catches up after a pause; its clock may be
        # heard as late as joint states may.
        far = clock < 0.0 or clock > max(0.25, self._config.state_timeout) + 20.0 * wall
        return f"the clock jumped by {clock:+.3f} s within {wall:.3f} s" if far else ""
