"""A robot's shape while it works: fitted anew, switched between variants, with objects taken up and put down."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence

from numpy.typing import ArrayLike

from morphit_ros.errors import InvalidInputError
from morphit_ros.geometry.transforms import Array
from morphit_ros.robot.description import RobotDescription
from morphit_ros.spheres.configuration import SphereFitConfig
from morphit_ros.spheres.objects.attachment import AttachedObject, RobotShape
from morphit_ros.spheres.robot_model import Progress, SphereModel, fit_robot_spheres

# Models that are kept for switching; one of a robot with 500 spheres takes 20 kB.
_MOST_KNOWN = 32


class AdaptiveShape:
    """The shape that a robot has now. Threads may change it at the same time: each change is whole, none is lost.

    Only one thread fits at a time; the others switch, attach and detach meanwhile. A fit that raises, also by
    a callback to end it, leaves the shape as it was.

    Args:
        changed: called with every new shape before the robot has it, in their order; the next change waits for it.
            What it raises reaches the caller of the change, which then is none.
    """

    def __init__(self, changed: Callable[[RobotShape], None]) -> None:
        self._changed = changed
        self._shape: RobotShape | None = None
        self._known: OrderedDict[tuple[SphereFitConfig, int], SphereModel] = OrderedDict()
        self._change = threading.Lock()
        self._fitting = threading.Lock()

    @property
    def shape(self) -> RobotShape | None:
        """None before the first description."""
        return self._shape

    def describe(
        self,
        description: RobotDescription,
        config: SphereFitConfig,
        seed: int = 0,
        progress: Progress | None = None,
        check: Callable[[], None] | None = None,
    ) -> RobotShape:
        """Take the shape of a robot, fitted as `adapt` does; objects that it can carry stay attached.

        Raises:
            MorphitError: as of `fit_robot_spheres`.
        """
        with self._fitting:
            model = fit_robot_spheres(description, config, seed=seed, progress=progress)
            with self._change:
                if check is not None:
                    check()
                before = self._shape
                shape = self._become(
                    RobotShape(description, model) if before is None else before.described(description, model)
                )
                self._known.clear()
                self._keep(config, seed, model)
                return shape

    def adapt(
        self,
        config: SphereFitConfig,
        seed: int = 0,
        links: Sequence[str] = (),
        warm_start: bool = False,
        progress: Progress | None = None,
        check: Callable[[], None] | None = None,
    ) -> RobotShape:
        """Fit with other settings, or take the spheres of an earlier fit of all links with these.

        Args:
            config, seed: of the fit.
            links: links to fit; the others keep their spheres. Empty: all.
            warm_start: begin at the present spheres. The result depends on them and is not kept for switching.
            progress: as of `fit_robot_spheres`.
            check: called once what was fitted is about to be taken, when no other change can come between: raises if
                it is not wanted any more. A change made after its reason to raise is never overruled by this one.

        Raises:
            InvalidInputError: there is no description yet.
            MorphitError: as of `fit_robot_spheres`.
        """
        with self._fitting:
            before = self._described()
            whole = not links and not warm_start
            model = self._known.get((config, seed)) if whole else None
            if model is None:
                start = before.model if warm_start else None
                model = fit_robot_spheres(
                    before.description, config, list(links) or None, seed, progress=progress, start=start
                )
            asked = {name: spheres for name, spheres in model.links.items() if not links or name in links}
            with self._change:
                if check is not None:
                    check()
                shape = self._become(self._described().refitted(SphereModel(model.robot_name, model.variant, asked)))
                if whole:
                    self._keep(config, seed, model)
                return shape

    def switch(self, config: SphereFitConfig, seed: int = 0) -> RobotShape | None:
        """Take the spheres of an earlier fit of all links at once; None, and no change, if there is none."""
        with self._change:
            model = self._known.get((config, seed))
            if model is None:
                return None
            shape = self._become(self._described().refitted(model))
            self._keep(config, seed, model)
            return shape

    def attach(self, name: str, link: str, make: Callable[[], AttachedObject]) -> RobotShape:
        """Take up an object, made only if it can be taken up; changes go on meanwhile.

        Raises:
            InvalidInputError: as of `RobotShape.check_free` and `make`, or there is no description yet.
        """
        with self._change:
            # Whoever has seen a shape that is just being published means that one.
            self._described().check_free(name, link)
        item = make()
        with self._change:
            return self._become(self._described().attach(item))

    def wear(self, name: str, frame: str, spheres: tuple[ArrayLike, ArrayLike], T_frame_object: Array) -> RobotShape:
        """Take up an object in place of the one of that name before.

        Raises:
            InvalidInputError: as of `RobotShape.wear`, or there is no description yet.
        """
        with self._change:
            return self._become(self._described().wear(name, frame, spheres, T_frame_object))

    def detach(self, name: str) -> RobotShape:
        """Put an object down.

        Raises:
            InvalidInputError: as of `RobotShape.detach`, or there is no description yet.
        """
        with self._change:
            return self._become(self._described().detach(name))

    def _described(self) -> RobotShape:
        if self._shape is None:
            raise InvalidInputError("robot_description", "nothing yet", "a robot description")
        return self._shape

    def _keep(self, config: SphereFitConfig, seed: int, model: SphereModel) -> None:
        self._known[config, seed] = model
        self._known.move_to_end((config, seed))
        if len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)

    def _become(self, shape: RobotShape) -> RobotShape:
        # What cannot be published, nobody else has: the robot keeps the shape that all know.
        self._changed(shape)
        self._shape = shape
        return shape
