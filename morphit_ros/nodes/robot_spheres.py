"""Spheres for a robot description: fitted at start and on request, switched and with objects attached at run time."""

from __future__ import annotations

from dataclasses import dataclass

from rclpy.action.server import ServerGoalHandle
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.node import Node
from std_msgs.msg import String

from morphit_interfaces.action import FitSpheres
from morphit_interfaces.srv import AttachObject, DetachObject
from morphit_ros.configuration import Config, nested, parameter
from morphit_ros.errors import MorphitError
from morphit_ros.robot.description import RobotDescription
from morphit_ros.ros.core import interfaces
from morphit_ros.ros.core.description_source import DescriptionConfig
from morphit_ros.ros.core.diagnostics import ERROR, OK, WARN, Diagnostics
from morphit_ros.ros.core.parameters import FollowedConfig, declare_configs
from morphit_ros.ros.core.runner import run_node
from morphit_ros.ros.spheres.attach_request import MOST_SPHERES, answer_change, object_from_request
from morphit_ros.ros.spheres.fit_requests import Check, FitRequests, Progress, fit_config_of
from morphit_ros.ros.spheres.planning_scene import PlanningSceneUpdates
from morphit_ros.ros.spheres.publisher import SpherePublisher, summary
from morphit_ros.ros.spheres.worn_cover import WornCover, WornCoverConfig
from morphit_ros.spheres import SphereFitConfig
from morphit_ros.spheres.adaptation import AdaptiveShape
from morphit_ros.spheres.objects.attachment import RobotShape
from morphit_ros.spheres.warm_up import warm_up


@dataclass(frozen=True)
class RobotSpheresConfig(Config):
    """What is made of the description besides the fit."""

    padding: float = parameter(0.0, "Added to every radius in the spherised URDF [m]", minimum=0.0, maximum=0.1)
    seed: int = parameter(0, "Seed of the fit", minimum=0, maximum=2**31 - 1)
    attached_count: int = parameter(40, "Spheres of an attached object", minimum=1, maximum=MOST_SPHERES)
    planning_scene: bool = parameter(
        False,
        "Whether a running move_group is told of each change, by apply_planning_scene (needs moveit_msgs)",
    )
    touch_links: tuple[str, ...] = parameter((), "Links that an attached object may touch in move_group")
    cover: WornCoverConfig = nested(WornCoverConfig)


CONFIGS = (DescriptionConfig, RobotSpheresConfig, SphereFitConfig)
SETTABLE = (SphereFitConfig,)


class RobotSpheres(Node):
    """Fits once a description is known; keeps the last good model.

    Fits take seconds and are made one after the other by one worker. What is there at once (switching to what was
    fitted before, attaching, detaching) does not wait for them.
    """

    def __init__(self) -> None:
        super().__init__("robot_spheres")
        self._source, self._config, fit_config = declare_configs(self, CONFIGS, SETTABLE)
        self._diagnostics = Diagnostics(self)
        # The model is to follow this description, unless it is the refused one, and these parameters.
        self._newest = self._source.load()
        self._refused: RobotDescription | None = None
        warm_up()
        self._settings = FollowedConfig(self, fit_config, self._on_settings)
        # The parameters that the model has followed last; a goal may have changed it since.
        self._followed: SphereFitConfig | None = None
        padding = self._config.padding
        scene = PlanningSceneUpdates(self) if self._config.planning_scene else None
        self._publisher = SpherePublisher(self, padding, self._diagnostics, scene, self._config.touch_links)
        self._adaptive = AdaptiveShape(self._publisher.publish)
        self._requests = FitRequests(self, self._follow, self._fit)
        self._server = interfaces.FIT_SPHERES.take(self, self._requests.add)
        at_once = MutuallyExclusiveCallbackGroup()
        interfaces.ATTACH_OBJECT.serve(self, self._on_attach, at_once)
        interfaces.DETACH_OBJECT.serve(self, self._on_detach, at_once)
        self._cover = WornCover(self, self._config.cover, self._adaptive, self._on_no_cover, at_once)
        topic = interfaces.ROBOT_DESCRIPTION
        if self._newest is None:
            topic.subscribe(self, self._on_description)
            self._diagnostics.report(OK, f"waiting for {topic.name}")
        else:
            topic.publish(self).publish(String(data=self._newest.xml_to_publish()))
            self._requests.follow()

    def _on_description(self, message: String) -> None:
        try:
            self._newest = self._source.read(message.data)
        except MorphitError as error:
            self._diagnostics.report(ERROR, f"robot description refused, the last model is kept: {error}")
            return
        self._requests.follow()

    def _on_settings(self) -> None:
        # First of all: a fit that is just about to end must not overrule what is switched to now.
        self._requests.give_up_following()
        config = self._settings.value
        if self._is_settled(self._newest) and self._adaptive.switch(config, self._config.seed) is not None:
            self._followed = config
        elif self._newest is not None:
            self._requests.follow()

    def _is_settled(self, description: RobotDescription | None) -> bool:
        """Whether there is a shape, and the description is its own or was refused: only settings can change."""
        shape = self._adaptive.shape
        return shape is not None and (description is shape.description or description is self._refused)

    # Called by the worker

    def _follow(self, progress: Progress, check: Check) -> None:
        description, config, seed = self._newest, self._settings.value, self._config.seed
        known = self._is_settled(description)
        try:
            if known:
                self._adaptive.adapt(config, seed, progress=progress, check=check)
            else:
                self._adaptive.describe(description, config, seed, progress, check)
        except MorphitError as error:
            self._diagnostics.report(ERROR, f"spheres not fitted, the last model is kept: {error}")
            if not known:
                self._refused = description
                # Parameters that changed together with the description hold for the last model too.
                if self._adaptive.shape is not None and config != self._followed:
                    self._requests.follow()
            return
        self._followed = config

    def _fit(self, goal: ServerGoalHandle, progress: Progress, check: Check) -> FitSpheres.Result:
        request: FitSpheres.Goal = goal.request
        try:
            config = fit_config_of(request, self._settings.value)
            shape = self._adaptive.adapt(config, request.seed, request.links, request.warm_start, progress, check)
        except MorphitError as error:
            self._diagnostics.report(WARN, f"{interfaces.FIT_SPHERES.name}: the last model is kept: {error}")
            return FitSpheres.Result(message=str(error))
        return FitSpheres.Result(success=True, message=summary(shape), model=self._publisher.message(shape))

    # Attached objects

    def _on_attach(self, request: AttachObject.Request, response: AttachObject.Response) -> AttachObject.Response:
        name, link = request.object_id, request.link_name

        def attach() -> RobotShape:
            return self._adaptive.attach(name, link, lambda: object_from_request(request, self._config.attached_count))

        return answer_change(response, attach, f"attached {name} to {link}")

    def _on_detach(self, request: DetachObject.Request, response: DetachObject.Response) -> DetachObject.Response:
        name = request.object_id
        return answer_change(response, lambda: self._adaptive.detach(name), f"detached {name}")

    def _on_no_cover(self, error: MorphitError) -> None:
        self._diagnostics.report(WARN, f"the cover's plates are not taken, those before are kept: {error}")


def main(args: list[str] | None = None) -> None:
    run_node(RobotSpheres, args, threads=4)


if __name__ == "__main__":
    main()
