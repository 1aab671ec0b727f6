"""Spheres for a robot description: fitted at start and on request, attached objects included."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from rclpy.action import ActionServer
from rclpy.action.server import ServerGoalHandle
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.node import Node
from std_msgs.msg import String

from morphit_interfaces.action import FitSpheres
from morphit_interfaces.msg import SphereModel as SphereModelMsg
from morphit_interfaces.srv import AttachObject
from morphit_ros.configuration import Config, parameter
from morphit_ros.errors import InvalidInputError, MorphitError
from morphit_ros.geometry.transforms import Array, transform_points
from morphit_ros.robot.configuration import RobotConfiguration
from morphit_ros.robot.description import RobotDescription, load_robot_description
from morphit_ros.ros import interfaces
from morphit_ros.ros.conversions import cloud_from_message
from morphit_ros.ros.diagnostics import ERROR, OK, Diagnostics
from morphit_ros.ros.markers import sphere_markers
from morphit_ros.ros.parameters import declare_configs
from morphit_ros.ros.runner import run_node
from morphit_ros.ros.sphere_messages import link_spheres_from_message, message_from_link_spheres
from morphit_ros.spheres import (
    SphereFitConfig,
    SphereModel,
    fit_robot_spheres,
    spherize_cloud,
    spherized_urdf,
)

_MOST_ATTACHED = 1000


@dataclass(frozen=True)
class RobotSpheresConfig(Config):
    """Where the description comes from and what is made of it."""

    robot: str = parameter("", "Robot in config/robots whose description file is read")
    description_file: str = parameter("", "URDF or xacro: path, file:// or package:// (instead of robot)")
    robot_description: str = parameter("", "URDF text (instead of a file); all three empty: wait for the latched topic")
    package_paths: tuple[str, ...] = parameter((), "Folders that hold packages, searched first")
    padding: float = parameter(0.0, "Added to every radius in the spherised URDF [m]", minimum=0.0, maximum=0.1)
    seed: int = parameter(0, "Seed of the fit", minimum=0, maximum=2**31 - 1)
    attached_count: int = parameter(40, "Spheres of an attached object", minimum=1, maximum=_MOST_ATTACHED)


CONFIGS = (RobotSpheresConfig, SphereFitConfig)


class RobotSpheres(Node):
    """Fits once a description is known; keeps the last good model."""

    def __init__(self) -> None:
        super().__init__("robot_spheres")
        self._config, self._fit_config = declare_configs(self, CONFIGS)
        self._diagnostics = Diagnostics(self)
        self._description: RobotDescription | None = None
        self._model: SphereModel | None = None
        self._attached: dict[str, tuple] = {}
        self._out = {
            topic: self.create_publisher(topic.type, topic.name, topic.quality.profile())
            for topic in (interfaces.SPHERE_DESCRIPTION, interfaces.SPHERE_MODEL, interfaces.SPHERE_MARKERS)
        }
        # Fits take seconds: one at a time, in a group of their own.
        work = MutuallyExclusiveCallbackGroup()
        self._server = ActionServer(self, FitSpheres, interfaces.FIT_SPHERES.name, self._on_fit, callback_group=work)
        self.create_service(AttachObject, interfaces.ATTACH_OBJECT.name, self._on_attach, callback_group=work)
        source = self._given_source()
        if source is None:
            topic = interfaces.ROBOT_DESCRIPTION
            self.create_subscription(
                topic.type, topic.name, self._on_description, topic.quality.profile(), callback_group=work
            )
            self._diagnostics.report(OK, f"waiting for {topic.name}")
            return
        description = load_robot_description(source, package_paths=self._config.package_paths)
        publisher = self.create_publisher(String, interfaces.ROBOT_DESCRIPTION.name, interfaces.LATCHED.profile())
        publisher.publish(String(data=description.xml))
        self._start_fit = self.create_timer(0.0, lambda: self._fit_at_start(description), callback_group=work)

    def _given_source(self) -> str | None:
        sources = [self._config.robot, self._config.description_file, self._config.robot_description]
        if sum(bool(source) for source in sources) > 1:
            raise InvalidInputError(
                "robot, description_file, robot_description", "several given", "at most one of the three"
            )
        if self._config.robot:
            return RobotConfiguration.load(self._config.robot).description
        return self._config.description_file or self._config.robot_description or None

    def _fit_at_start(self, description: RobotDescription) -> None:
        self._start_fit.cancel()
        self._fit_and_keep(description)

    def _on_description(self, message: String) -> None:
        try:
            description = load_robot_description(message.data, package_paths=self._config.package_paths)
        except MorphitError as error:
            self._diagnostics.report(ERROR, f"robot description refused, the last model is kept: {error}")
            return
        self._fit_and_keep(description)

    def _fit_and_keep(self, description: RobotDescription) -> None:
        try:
            model = fit_robot_spheres(description, self._fit_config, seed=self._config.seed)
        except MorphitError as error:
            self._diagnostics.report(ERROR, f"spheres not fitted, the last model is kept: {error}")
            return
        self._description, self._model = description, model
        # Another robot may lack the link that carries an object.
        self._attached = {name: body for name, body in self._attached.items() if body[0] in description.links}
        self._publish()

    def _on_fit(self, goal: ServerGoalHandle) -> FitSpheres.Result:
        request: FitSpheres.Goal = goal.request

        def feedback(link: str, done: int, total: int) -> None:
            goal.publish_feedback(FitSpheres.Feedback(link=link, done=done, total=total))

        try:
            if self._description is None or self._model is None:
                raise InvalidInputError(interfaces.ROBOT_DESCRIPTION.name, "nothing yet", "a robot description")
            config = self._fit_config
            if request.seed < 0:
                raise InvalidInputError("seed", request.seed, "at least 0")
            if request.count:
                config = replace(config, count=request.count)
            if request.variant:
                config = replace(config, variant=request.variant)
            fitted = fit_robot_spheres(
                self._description, config, links=list(request.links) or None, seed=request.seed, progress=feedback
            )
        except MorphitError as error:
            goal.abort()
            return FitSpheres.Result(message=str(error))
        # Links that were not asked for keep their spheres.
        self._model = replace(fitted, links={**self._model.links, **fitted.links})
        goal.succeed()
        return FitSpheres.Result(success=True, message=self._publish(), model=self._model_message())

    def _on_attach(self, request: AttachObject.Request, response: AttachObject.Response) -> AttachObject.Response:
        try:
            response.message = self._detach(request) if request.detach else self._attach(request)
            response.success = True
        except MorphitError as error:
            response.message = str(error)
        return response

    def _detach(self, request: AttachObject.Request) -> str:
        if self._attached.pop(request.object_id, None) is None:
            raise InvalidInputError("object_id", request.object_id, f"one of the attached: {sorted(self._attached)}")
        self._publish()
        return f"detached {request.object_id}"

    def _attach(self, request: AttachObject.Request) -> str:
        if self._description is None:
            raise InvalidInputError(interfaces.ROBOT_DESCRIPTION.name, "nothing yet", "a robot description")
        if not request.object_id or request.object_id in self._attached:
            raise InvalidInputError("object_id", repr(request.object_id), "a name that is not attached yet")
        if request.link_name not in self._description.links:
            raise InvalidInputError("link_name", request.link_name, f"one of {', '.join(self._description.links)}")
        self._carrier(request.link_name)
        cloud = cloud_from_message(request.cloud).finite()
        if cloud.frame != request.link_name:
            raise InvalidInputError("cloud frame", cloud.frame, f"the frame of the link, {request.link_name}")
        if request.sphere_count > _MOST_ATTACHED:
            raise InvalidInputError("sphere_count", request.sphere_count, f"at most {_MOST_ATTACHED}")
        centers, radii = spherize_cloud(cloud.points, request.sphere_count or self._config.attached_count)
        self._attached[request.object_id] = (request.link_name, centers, radii)
        self._publish()
        return f"attached {request.object_id} to {request.link_name} as {len(radii)} spheres"

    def _publish(self) -> str:
        message = self._model_message()
        urdf = spherized_urdf(self._description, self._with_attached(), padding=self._config.padding)
        self._out[interfaces.SPHERE_DESCRIPTION].publish(String(data=urdf))
        self._out[interfaces.SPHERE_MODEL].publish(message)
        self._out[interfaces.SPHERE_MARKERS].publish(sphere_markers(link_spheres_from_message(message)))
        count = sum(len(link.spheres) for link in message.links)
        text = f"{count} spheres on {len(self._model.links)} links of {self._description.name}"
        worst = max((link.d_max for link in self._model.links.values()), default=0.0)
        self._diagnostics.report(OK, text, {"worst d_max [m]": worst, "attached": len(self._attached)})
        return text

    def _with_attached(self) -> SphereModel:
        """The model whose links include what is attached to them."""
        links = dict(self._model.links)
        for name, centers, radii in self._attached.values():
            link, T_link_frame = self._carrier(name)
            own, moved = links[link], transform_points(T_link_frame, centers)
            links[link] = replace(
                own, centers=np.concatenate([own.centers, moved]), radii=np.concatenate([own.radii, radii])
            )
        return replace(self._model, links=links)

    def _carrier(self, frame: str) -> tuple[str, Array]:
        """The link with spheres that a link is, or is fixed to, and ``T_link_frame`` (4, 4).

        Raises:
            InvalidInputError: there is none.
        """
        link, T_link_frame = frame, np.eye(4)
        while link not in self._model.links:
            joint = self._description.parent_joint(link)
            if joint is None or joint.kind != "fixed":
                bound = f"a link with collision geometry ({', '.join(self._model.links)}), or one fixed to it"
                raise InvalidInputError("link_name", frame, bound)
            link, T_link_frame = joint.parent, joint.T_parent_child @ T_link_frame
        return link, T_link_frame

    def _model_message(self) -> SphereModelMsg:
        model = self._model
        links = [
            message_from_link_spheres(name, link.centers, link.radii, link.d_avg, link.d_max)
            for name, link in model.links.items()
        ]
        links += [message_from_link_spheres(*attached) for attached in self._attached.values()]
        message = SphereModelMsg(
            robot_name=self._description.name, variant=model.variant, content_hash=model.content_hash, links=links
        )
        message.header.stamp = self.get_clock().now().to_msg()
        message.header.frame_id = self._description.root_link
        return message


def main(args: list[str] | None = None) -> None:
    run_node(RobotSpheres, args, threads=2)


if __name__ == "__main__":
    main()
