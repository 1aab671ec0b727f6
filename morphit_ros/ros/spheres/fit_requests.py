"""Fits that wait for their turn: one worker makes them, and each can be given up while it runs."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from rclpy.action.server import ServerGoalHandle
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.node import Node

from morphit_interfaces.action import FitSpheres
from morphit_ros.errors import InvalidInputError
from morphit_ros.ros.core.endpoints import settle
from morphit_ros.ros.core.parameters import with_assignments
from morphit_ros.spheres import SphereFitConfig

Progress = Callable[[str, int, int], None]
Check = Callable[[], None]


class _FitGivenUp(Exception):
    """Ends a fit that nobody wants any more."""


class FitRequests:
    """Takes turns between the goals of `fit_spheres`, in their order, and following parameters and description.

    To follow is asked for without an order: the worker takes what holds when its turn comes, and begins anew if that
    changes meanwhile. So the last of many changes wins, and no fit is made for those in between.

    Args:
        node: owner of the worker's callback.
        follow: fits to the parameters and the description as they are.
        fit: makes the result of a goal. Both call the given progress after each link and the given check when they
            are about to take what was fitted; either raises to end a fit that nobody wants any more.
    """

    def __init__(
        self,
        node: Node,
        follow: Callable[[Progress, Check], None],
        fit: Callable[[ServerGoalHandle, Progress, Check], FitSpheres.Result],
    ) -> None:
        self._follow = follow
        self._fit = fit
        self._goals: deque[ServerGoalHandle] = deque()
        self._state = threading.Lock()
        # Counts the changes that are to be followed; behind `_followed` as long as one waits.
        self._changes = self._followed = 0
        self._wake = node.create_guard_condition(self._work, callback_group=MutuallyExclusiveCallbackGroup())

    def add(self, goal: ServerGoalHandle) -> None:
        """Take an accepted goal."""
        self._goals.append(goal)
        self._wake.trigger()

    def follow(self) -> None:
        """Parameters or description have changed: an older change that is still being followed is given up."""
        with self._state:
            self._changes += 1
        self._wake.trigger()

    def give_up_following(self) -> None:
        """The change that waits, or is being followed, holds no longer: its check raises from now on."""
        with self._state:
            self._changes += 1
            self._followed = self._changes

    def _work(self) -> None:
        while self._goals or self._changes != self._followed:
            if self._changes != self._followed:
                self._follow_changes()
            if self._goals:
                self._settle(self._goals.popleft())

    def _follow_changes(self) -> None:
        with self._state:
            wanted = self._changes

        def check() -> None:
            if self._changes != wanted:
                raise _FitGivenUp

        try:
            self._follow(lambda *_: check(), check)
        except _FitGivenUp:
            return
        with self._state:
            self._followed = max(self._followed, wanted)

    def _settle(self, goal: ServerGoalHandle) -> None:
        def check() -> None:
            if goal.is_cancel_requested:
                raise _FitGivenUp

        def progress(link: str, done: int, total: int) -> None:
            check()
            goal.publish_feedback(FitSpheres.Feedback(link=link, done=done, total=total))

        try:
            # It may have been cancelled while it waited for its turn.
            check()
            result = self._fit(goal, progress, check)
        except _FitGivenUp:
            result = FitSpheres.Result(message="cancelled: the last model is kept")
        settle(goal, result)


def fit_config_of(request: FitSpheres.Goal, parameters: SphereFitConfig) -> SphereFitConfig:
    """The settings of a goal: the node's parameters and what the goal asks for instead.

    Raises:
        InvalidInputError: an unknown setting, or a value out of range; names it.
    """
    if request.seed < 0:
        raise InvalidInputError("seed", request.seed, "at least 0")
    values = with_assignments(parameters.to_flat(), request.settings)
    if request.count:
        values["count"] = request.count
    if request.variant:
        values["variant"] = request.variant
    return SphereFitConfig.from_flat(values)
