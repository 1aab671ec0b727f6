"""Neural objects: mass, contact and differentiable motion of objects known only as a density field.

Names are imported when they are first used: learning needs PyTorch, dynamics compiled kernels, most callers only one.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from morphit_ros.neural.body import ContactBody as ContactBody
    from morphit_ros.neural.contact.parameters import ContactParameters as ContactParameters
    from morphit_ros.neural.dynamics.gradients import differentiable_rollout as differentiable_rollout
    from morphit_ros.neural.dynamics.rollouts import simulate_batch as simulate_batch
    from morphit_ros.neural.dynamics.simulate import rollout_derivatives as rollout_derivatives
    from morphit_ros.neural.dynamics.simulate import simulate as simulate
    from morphit_ros.neural.dynamics.simulate import step_derivatives as step_derivatives
    from morphit_ros.neural.dynamics.state import BodyState as BodyState
    from morphit_ros.neural.dynamics.world import Obstacle as Obstacle
    from morphit_ros.neural.dynamics.world import RigidBody as RigidBody
    from morphit_ros.neural.dynamics.world import World as World
    from morphit_ros.neural.field import DensityField as DensityField
    from morphit_ros.neural.fields.field_file import LearnedField as LearnedField
    from morphit_ros.neural.fields.field_file import load_field as load_field
    from morphit_ros.neural.fields.field_file import load_learned_field as load_learned_field
    from morphit_ros.neural.fields.field_file import save_field as save_field
    from morphit_ros.neural.fields.grid import GridField as GridField
    from morphit_ros.neural.identification import Experiment as Experiment
    from morphit_ros.neural.identification import IdentificationConfig as IdentificationConfig
    from morphit_ros.neural.identification import IdentificationResult as IdentificationResult
    from morphit_ros.neural.identification import PoseTrack as PoseTrack
    from morphit_ros.neural.identification import SimulatedMotion as SimulatedMotion
    from morphit_ros.neural.identification import Unknown as Unknown
    from morphit_ros.neural.identification import identify as identify
    from morphit_ros.neural.learning.depth import learn_from_depths as learn_from_depths
    from morphit_ros.neural.learning.images import learn_from_images as learn_from_images
    from morphit_ros.neural.solid.extraction import Solid as Solid
    from morphit_ros.neural.solid.extraction import extract_solid as extract_solid
    from morphit_ros.neural.solid.inertia import InertialProperties as InertialProperties
    from morphit_ros.neural.solid.inertia import inertial_properties as inertial_properties
    from morphit_ros.neural.solid.sampling import sample_body as sample_body
    from morphit_ros.neural.trajectory_optimization.push import plan_push as plan_push
    from morphit_ros.neural.trajectory_optimization.push_config import PushConfig as PushConfig
    from morphit_ros.neural.views.posed_views import PosedDepths as PosedDepths
    from morphit_ros.neural.views.posed_views import PosedImages as PosedImages

# Name → module of the room.
_MODULES = {
    "BodyState": "dynamics.state",
    "ContactBody": "body",
    "ContactParameters": "contact.parameters",
    "DensityField": "field",
    "Experiment": "identification",
    "GridField": "fields.grid",
    "IdentificationConfig": "identification",
    "IdentificationResult": "identification",
    "InertialProperties": "solid.inertia",
    "LearnedField": "fields.field_file",
    "Obstacle": "dynamics.world",
    "PoseTrack": "identification",
    "PosedDepths": "views.posed_views",
    "PosedImages": "views.posed_views",
    "PushConfig": "trajectory_optimization.push_config",
    "RigidBody": "dynamics.world",
    "SimulatedMotion": "identification",
    "Solid": "solid.extraction",
    "Unknown": "identification",
    "World": "dynamics.world",
    "differentiable_rollout": "dynamics.gradients",
    "extract_solid": "solid.extraction",
    "identify": "identification",
    "inertial_properties": "solid.inertia",
    "learn_from_depths": "learning.depth",
    "learn_from_images": "learning.images",
    "load_field": "fields.field_file",
    "load_learned_field": "fields.field_file",
    "plan_push": "trajectory_optimization.push",
    "rollout_derivatives": "dynamics.simulate",
    "sample_body": "solid.sampling",
    "save_field": "fields.field_file",
    "simulate": "dynamics.simulate",
    "simulate_batch": "dynamics.rollouts",
    "step_derivatives": "dynamics.simulate",
}

__all__ = sorted(_MODULES)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value
