"""Requests to attach and to detach objects: as spheres on a link, and their answers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from morphit_interfaces.srv import AttachObject, DetachObject
from morphit_ros.errors import InvalidInputError, MorphitError
from morphit_ros.ros.core.conversions import cloud_from_message, matrix_from_pose, mesh_from_message
from morphit_ros.spheres.clustering import spherize_cloud, spherize_mesh
from morphit_ros.spheres.objects.attachment import AttachedObject, RobotShape, attached_object

MOST_SPHERES = 1000


def object_from_request(request: AttachObject.Request, default_count: int) -> AttachedObject:
    """The spheres of the object, in the frame of the link that is to carry it.

    Args:
        request: cloud or mesh.
        default_count: spheres if the request names no number.

    Raises:
        InvalidInputError: no object or two, a cloud in another frame or without points, a mesh without area or
            with bad indices, a pose that is none, too many spheres.
    """
    count = request.sphere_count or default_count
    if count > MOST_SPHERES:
        raise InvalidInputError("sphere_count", count, f"at most {MOST_SPHERES}")
    given = [len(request.cloud.data) > 0, len(request.mesh.triangles) > 0]
    if sum(given) != 1:
        raise InvalidInputError("cloud, mesh", "both" if all(given) else "neither", "points in one of the two")
    T_link_object = matrix_from_pose(request.pose)
    if given[1]:
        spheres = spherize_mesh(mesh_from_message(request.mesh), count)
        return attached_object(request.object_id, request.link_name, spheres, T_link_object)
    frame = request.cloud.header.frame_id
    if frame == request.link_name:
        if not np.allclose(T_link_object, np.eye(4), atol=1e-12):
            remedy = "Leave the cloud's frame empty if its points are in the object's own frame."
            raise InvalidInputError("pose", "one for a cloud in the link's frame", "the identity", remedy)
    elif frame:
        raise InvalidInputError("cloud frame", frame, f"the frame of the link, {request.link_name}, or none")
    points = cloud_from_message(request.cloud).finite().points
    return attached_object(request.object_id, request.link_name, spherize_cloud(points, count), T_link_object)


def answer_change(
    response: AttachObject.Response | DetachObject.Response, change: Callable[[], RobotShape], done: str
) -> AttachObject.Response | DetachObject.Response:
    """Change the robot's shape and fill in a response: the new shape and `done`, or why the old one is kept."""
    try:
        response.content_hash = change().content_hash
        response.success, response.message = True, done
    except MorphitError as error:
        response.message = str(error)
    return response
