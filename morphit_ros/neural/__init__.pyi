from .body import ContactBody as ContactBody
from .contact.parameters import ContactParameters as ContactParameters
from .dynamics.gradients import differentiable_rollout as differentiable_rollout
from .dynamics.rollouts import simulate_batch as simulate_batch
from .dynamics.simulate import (
    rollout_derivatives as rollout_derivatives,
    simulate as simulate,
    step_derivatives as step_derivatives,
)
from .dynamics.state import BodyState as BodyState
from .dynamics.world import Obstacle as Obstacle, RigidBody as RigidBody, World as World
from .field import DensityField as DensityField
from .fields.grid import GridField as GridField
from .identification import (
    Experiment as Experiment,
    IdentificationConfig as IdentificationConfig,
    IdentificationResult as IdentificationResult,
    PoseTrack as PoseTrack,
    SimulatedMotion as SimulatedMotion,
    Unknown as Unknown,
    identify as identify,
)
from .learning.depth import learn_from_depths as learn_from_depths
from .learning.field_file import (
    LearnedField as LearnedField,
    load_field as load_field,
    load_learned_field as load_learned_field,
    save_field as save_field,
)
from .learning.images import learn_from_images as learn_from_images
from .solid.extraction import Solid as Solid, extract_solid as extract_solid
from .solid.inertia import InertialProperties as InertialProperties, inertial_properties as inertial_properties
from .solid.sampling import sample_body as sample_body
from .trajectory_optimization.push import plan_push as plan_push
from .trajectory_optimization.push_config import PushConfig as PushConfig
from .views.posed_views import PosedDepths as PosedDepths, PosedImages as PosedImages
