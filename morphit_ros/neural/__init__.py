"""Neural objects: mass, contact and differentiable motion of objects known only as a density field.

Names are imported when they are first used: learning needs PyTorch, dynamics compiled kernels, most callers only one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from morphit_ros.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from morphit_ros.neural.body import ContactBody
    from morphit_ros.neural.contact.parameters import ContactParameters
    from morphit_ros.neural.dynamics.gradients import differentiable_rollout
    from morphit_ros.neural.dynamics.rollouts import simulate_batch
    from morphit_ros.neural.dynamics.simulate import rollout_derivatives, simulate, step_derivatives
    from morphit_ros.neural.dynamics.state import BodyState
    from morphit_ros.neural.dynamics.world import Obstacle, RigidBody, World
    from morphit_ros.neural.field import DensityField
    from morphit_ros.neural.fields.field_file import LearnedField, load_field, load_learned_field, save_field
    from morphit_ros.neural.fields.grid import GridField
    from morphit_ros.neural.identification import (
        Experiment,
        IdentificationConfig,
        IdentificationResult,
        PoseTrack,
        SimulatedMotion,
        Unknown,
        identify,
    )
    from morphit_ros.neural.learning.depth import learn_from_depths
    from morphit_ros.neural.learning.images import learn_from_images
    from morphit_ros.neural.solid.extraction import Solid, extract_solid
    from morphit_ros.neural.solid.inertia import InertialProperties, inertial_properties
    from morphit_ros.neural.solid.sampling import sample_body
    from morphit_ros.neural.trajectory_optimization.push import plan_push
    from morphit_ros.neural.trajectory_optimization.push_config import PushConfig
    from morphit_ros.neural.views.posed_views import PosedDepths, PosedImages
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "body": ("ContactBody",),
            "contact.parameters": ("ContactParameters",),
            "dynamics.gradients": ("differentiable_rollout",),
            "dynamics.rollouts": ("simulate_batch",),
            "dynamics.simulate": ("rollout_derivatives", "simulate", "step_derivatives"),
            "dynamics.state": ("BodyState",),
            "dynamics.world": ("Obstacle", "RigidBody", "World"),
            "field": ("DensityField",),
            "fields.field_file": ("LearnedField", "load_field", "load_learned_field", "save_field"),
            "fields.grid": ("GridField",),
            "identification": (
                "Experiment",
                "IdentificationConfig",
                "IdentificationResult",
                "PoseTrack",
                "SimulatedMotion",
                "Unknown",
                "identify",
            ),
            "learning.depth": ("learn_from_depths",),
            "learning.images": ("learn_from_images",),
            "solid.extraction": ("Solid", "extract_solid"),
            "solid.inertia": ("InertialProperties", "inertial_properties"),
            "solid.sampling": ("sample_body",),
            "trajectory_optimization.push": ("plan_push",),
            "trajectory_optimization.push_config": ("PushConfig",),
            "views.posed_views": ("PosedDepths", "PosedImages"),
        },
    )

__all__ = [
    "BodyState",
    "ContactBody",
    "ContactParameters",
    "DensityField",
    "Experiment",
    "GridField",
    "IdentificationConfig",
    "IdentificationResult",
    "InertialProperties",
    "LearnedField",
    "Obstacle",
    "PoseTrack",
    "PosedDepths",
    "PosedImages",
    "PushConfig",
    "RigidBody",
    "SimulatedMotion",
    "Solid",
    "Unknown",
    "World",
    "differentiable_rollout",
    "extract_solid",
    "identify",
    "inertial_properties",
    "learn_from_depths",
    "learn_from_images",
    "load_field",
    "load_learned_field",
    "plan_push",
    "rollout_derivatives",
    "sample_body",
    "save_field",
    "simulate",
    "simulate_batch",
    "step_derivatives",
]
