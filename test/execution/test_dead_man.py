"""The gate's state machine in all orders of events: nothing moves unheard, each stop has its true reason."""

from __future__ import annotations

import copy
from collections import deque

import pytest

from morphit_ros.execution.dead_man import DeadManConfig, DeadManGate, Order, Phase

# Ticks of one second, whole numbers: equal times are equal.
CONFIG = DeadManConfig(heartbeat_timeout=1.5, state_timeout=1.5, clock_timeout=1.5, silence_timeout=2.5, stop_time=0.5)
OLDEST = 3.0
CLIENT, COMMANDER = "/client", "/commander"


class World:
    """A gate, and what really happened, noted without it."""

    def __init__(self) -> None:
        self.gate = DeadManGate(CONFIG)
        self.wall = self.clock = 100.0
        self.commander = self.state = self.state_clock = -1e9
        self.client: float | None = None
        self.advanced = 100.0
        self.states_since = self.refused = 0
        self.overdue = ""
        self.gate.hear_commander(COMMANDER)
        self.commander = 0.0
        self.gate.tick(self.wall, self.clock)

    def silent(self) -> set[str]:
        """Words for who is really missing."""
        found = set()
        if self.wall - self.commander > CONFIG.heartbeat_timeout:
            found.add(COMMANDER)
        if self.client is not None and self.wall - self.client > CONFIG.heartbeat_timeout:
            found.add(CLIENT)
        if self.clock - self.state_clock > CONFIG.state_timeout or self.wall - self.state > CONFIG.silence_timeout:
            found.add("joint state")
        if self.refused >= 2:
            found.add("joint state that can be used")
        if self.state - self.advanced > CONFIG.clock_timeout and self.states_since > 2:
            found.add("clock stands still")
        return found

    def key(self) -> tuple:
        """What the future depends on: ages instead of times, those beyond any limit alike."""
        gate = self.gate

        def age(now: float, then: float) -> float:
            return min(now - then, OLDEST)

        ends = self.clock if gate.phase is Phase.MOVING else self.wall
        relevant = gate._ends - ends if gate.phase in (Phase.MOVING, Phase.BRAKING) else 0.0
        client = None if self.client is None else age(self.wall, self.client)
        return (
            gate.phase, bool(gate.reason), bool(gate._doubt), age(self.wall, self.commander), client,
            tuple(gate._clients), age(self.wall, self.state), age(self.clock, self.state_clock),
            age(self.wall, self.advanced), min(self.states_since, 3),
            min(self.refused, 2), max(-OLDEST, relevant), bool(self.overdue),
        )  # fmt: skip


def copied(world: World) -> World:
    other = copy.copy(world)
    other.gate = copy.copy(world.gate)
    other.gate._clients = dict(world.gate._clients)
    return other


def tick(world: World, wall: float, clock: float) -> Order:
    gate, before = world.gate, world.gate.phase
    if clock != 0.0:
        world.advanced, world.states_since = world.wall + wall, 0
    if clock < 0.0:
        world.state_clock = -1e9
    world.wall, world.clock = world.wall + wall, world.clock + clock
    missing = world.silent()
    order = gate.tick(world.wall, world.clock)
    if before is Phase.MOVING:
        # Two looks at most.
        assert gate.phase is not Phase.MOVING or not (world.overdue and missing), missing
        if clock < 0.0:
            assert gate.phase is Phase.BRAKING
            assert "clock jumped by" in gate.reason
        elif gate.phase is Phase.BRAKING:
            assert any(word in gate.reason for word in missing), (gate.reason, missing)
    world.overdue = "yes" if missing and gate.phase is Phase.MOVING else ""
    return order


def act(world: World, event: str) -> Order:
    gate = world.gate
    match event:
        case "commander":
            world.commander = world.wall
            gate.hear_commander(COMMANDER)
        case "client":
            world.client = world.wall
            gate.hear_client(CLIENT)
        case "client leaves":
            world.client = None
            gate.leave(CLIENT)
        case "client dies":
            known, world.client = CLIENT in gate._clients, None
            phase, order = gate.phase, gate.lose(CLIENT, "has died")
            assert order is (Order.BRAKE if known and phase is Phase.MOVING else Order.NOTHING)
            return order
        case "commander dies":
            phase, order = gate.phase, gate.lose(COMMANDER, "has died")
            assert order is (Order.BRAKE if phase is Phase.MOVING else Order.NOTHING)
            return order
        case "state":
            world.state, world.state_clock = world.wall, world.clock
            world.states_since += 1
            world.refused = 0
            gate.hear_state()
        case "bad state":
            world.refused += 1
            gate.refuse_state("of no use")
        case "command" | "bad command":
            world.commander, world.overdue = world.wall, ""
            return gate.command("" if event == "command" else "too fast", 1.0)
        case "stop":
            world.commander = world.wall
            return gate.stop()
        case "fault":
            return gate.fault("off the rails")
        case "tick":
            return tick(world, 1.0, 1.0)
        case "stall":
            return tick(world, 1.0, 0.0)
        case "back":
            return tick(world, 1.0, -1.0)
    return Order.NOTHING


EVENTS = (
    "commander", "client", "client leaves", "client dies", "commander dies", "state", "bad state", "command",
    "bad command", "stop", "fault", "tick", "stall", "back",
)  # fmt: skip


def check_step(before: World, event: str, after: World, order: Order) -> None:
    was, now = before.gate.phase, after.gate.phase
    if order is Order.FORWARD:
        assert event == "command"
        assert was in (Phase.RESTING, Phase.MOVING)
        assert not after.silent()
    if order is Order.BRAKE:
        assert was is Phase.MOVING
        assert now is Phase.BRAKING
    # The arm moves by a command alone, and never stops moving without being told to brake or to stop, or at the end.
    if now is Phase.MOVING and was is not Phase.MOVING:
        assert order is Order.FORWARD
    if was is Phase.MOVING and now in (Phase.BRAKING, Phase.STOPPED):
        assert order is Order.BRAKE
    if was is Phase.MOVING and now is Phase.RESTING:
        assert event == "stop" or after.clock > before.gate._ends
    # After a fault nothing moves before a stop was said.
    if was in (Phase.BRAKING, Phase.STOPPED) and event != "stop":
        assert now is not Phase.MOVING
        if before.gate.reason:
            assert now in (Phase.BRAKING, Phase.STOPPED)
            assert after.gate.reason == before.gate.reason
    if was is Phase.BRAKING and now is not Phase.BRAKING:
        assert order is Order.STOP
    if now is Phase.STOPPED:
        assert after.gate.reason


def check_way_back(world: World) -> None:
    """From anywhere: who is well again may move."""
    again = copied(world)
    for event in ("client leaves", "stop", "tick", "state", "tick", "state", "stop", "tick", "state", "commander"):
        act(again, event)
    assert act(again, "command") is Order.FORWARD
    for event in ("tick", "commander", "state"):
        act(again, event)
    assert again.gate.phase is Phase.MOVING


def test_all_orders_of_events() -> None:
    first = World()
    waiting, seen, phases = deque([first]), {first.key()}, set()
    steps = 0
    while waiting:
        world = waiting.popleft()
        phases.add(world.gate.phase)
        if len(seen) % 7 == 0:
            check_way_back(world)
        for event in EVENTS:
            after = copied(world)
            order = act(after, event)
            if after.client is not None and CLIENT not in after.gate._clients:
                # Forgotten, as its silence has been told.
                assert CLIENT in after.gate.reason
                after.client = None
            check_step(world, event, after, order)
            steps += 1
            key = after.key()
            if key not in seen:
                seen.add(key)
                waiting.append(after)
    assert phases == set(Phase)
    assert len(seen) > 1000


def moving() -> World:
    world = World()
    for event in ("tick", "state", "commander"):
        act(world, event)
    assert act(world, "command") is Order.FORWARD
    return world


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        (["tick", "state"] * 3, "no heartbeat of /commander for 2.000 s"),
        (["tick", "commander"] * 3, "no joint state that can be used for 2.000 s"),
        (["client", *["tick", "state", "commander"] * 3], "no heartbeat of the client /client for 2.000 s"),
        (["stall", "commander"] * 6, "no joint state for 3.000 s of wall time"),
        (["stall", "state", "commander"] * 5, "the clock stands still for"),
        (
            ["bad state", "bad state", "tick", "commander", "tick"],
            "no joint state that can be used for 1.000 s: of no use",
        ),
        (["back"], "the clock jumped by -1.000 s"),
        (["commander dies"], "/commander has died"),
        (["client", "client dies"], "the client /client has died"),
        (["bad command"], "too fast"),
    ],
)
def test_the_reason_is_the_true_one(events: list[str], reason: str) -> None:
    world = moving()
    orders = []
    for event in events:
        orders.append(act(world, event))
        if orders[-1] is Order.BRAKE:
            break
        # Trajectories follow each other.
        if world.gate.phase is Phase.RESTING:
            world.gate.phase = Phase.MOVING
    assert orders.count(Order.BRAKE) == 1
    # Said with the number at the second look.
    assert world.gate.reason.startswith(reason.split(" for ")[0])


def test_a_command_while_the_arm_brakes_is_not_lost_silently() -> None:
    world = moving()
    assert act(world, "fault") is Order.BRAKE
    act(world, "stop")
    assert world.gate.reason == ""
    assert act(world, "command") is Order.NOTHING
    assert "still braking" in world.gate.reason
    act(world, "tick")
    assert world.gate.phase is Phase.STOPPED
    act(world, "state")
    act(world, "stop")
    assert act(world, "command") is Order.FORWARD


@pytest.mark.parametrize(
    ("step", "patience", "far"),
    [
        (0.2, 0.06, False),
        (0.4, 0.06, False),
        (0.6, 0.06, True),
        (-0.001, 0.06, True),
        (1.1, 1.0, False),
        (1.3, 1.0, True),
    ],
)
def test_a_clock_that_catches_up_after_a_pause_has_not_jumped(step: float, patience: float, far: bool) -> None:
    """A quarter of a second, or as late as states may be, and twenty times as fast as time; more is another clock."""
    gate = DeadManGate(DeadManConfig(state_timeout=patience))
    for wall in (1.0, 1.01):
        gate.tick(wall, wall)
        gate.hear_commander(COMMANDER)
        gate.hear_state()
    assert gate.command("", 5.0) is Order.FORWARD
    order = gate.tick(1.02, 1.01 + step)
    assert (order is Order.BRAKE) is far
    assert ("the clock jumped by" in gate.reason) is far
    assert gate.clock_lost is far


@pytest.mark.parametrize(("heard", "passes"), [(100.5, True), (98.0, False)])
def test_a_state_from_before_the_clock_was_known_is_as_old_as_in_wall_time(heard: float, passes: bool) -> None:
    """Simulated time is zero until the first tick of its clock, which may be far from zero."""
    gate = DeadManGate(CONFIG)
    gate.tick(heard, 0.0)
    gate.hear_state()
    gate.tick(101.0, 5000.0)
    gate.hear_commander(COMMANDER)
    order = gate.command("", 1.0)
    assert (order is Order.FORWARD) == passes, gate.reason
    assert passes or "joint state" in gate.reason
