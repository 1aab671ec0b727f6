from .clustering import spherize_cloud as spherize_cloud
from .configuration import LossWeights as LossWeights, SphereFitConfig as SphereFitConfig
from .deviation import sphere_deviation as sphere_deviation, with_deviations as with_deviations
from .exports import (
    FORMATS as FORMATS,
    MotionPlannerConfig as MotionPlannerConfig,
    export_model as export_model,
    format_of as format_of,
    read_model as read_model,
)
from .exports.tables import (
    csv_from_model as csv_from_model,
    json_content as json_content,
    json_from_model as json_from_model,
    model_from_json as model_from_json,
)
from .exports.urdf import spherized_urdf as spherized_urdf
from .fit import SphereFitResult as SphereFitResult, SphereFitStatus as SphereFitStatus, fit_spheres as fit_spheres
from .front import FrontMember as FrontMember, link_front as link_front, sphere_front as sphere_front
from .links.budget import (
    counts_for_distance as counts_for_distance,
    distribute_spheres as distribute_spheres,
    fewest_spheres as fewest_spheres,
)
from .metrics import SphereMetrics as SphereMetrics, measure_spheres as measure_spheres
from .robot_model import (
    LinkSpheres as LinkSpheres,
    SphereModel as SphereModel,
    fit_robot_spheres as fit_robot_spheres,
    spheres_in_frame as spheres_in_frame,
)
from .self_collision.matrix import (
    SelfCollisionMatrix as SelfCollisionMatrix,
    self_collision_matrix as self_collision_matrix,
    touching_pairs as touching_pairs,
)
