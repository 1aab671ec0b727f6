"""Learn an object from posed depth pictures: its shape, mass, centre of mass and inertia, with errors to expect."""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from morphit_ros import Shape
from morphit_ros.display.display_list import MeshItem
from morphit_ros.display.picture import draw_items
from morphit_ros.neural import LearnedField, PosedDepths, inertial_properties, learn_from_depths
from morphit_ros.simulation.object_views import ObjectViewsConfig, render_object
from morphit_ros.simulation.objects import load_object

picture, mass = Path(*sys.argv[1:2], "08_neural_object_from_pictures.png"), 0.2

# A T-shaped block of 0.2 kg before 24 simulated cameras. `PosedDepths` takes your own pictures with poses, in metres.
block = load_object("t_block")
views = render_object(block, np.eye(4), ObjectViewsConfig(views=24, size=96))
result = learn_from_depths(PosedDepths(views.depth, views.intrinsics, views.T_world_camera, views.masks))
if result.field is None:
    sys.exit(result.message)
learned = Shape(LearnedField(result.field, result.threshold, eyes := views.T_world_camera[:, :3, 3])).field()
found, truth = inertial_properties(learned.solid, mass, eyes=eyes), inertial_properties(block.mesh, mass)

print(f"{result.message}; to expect: surface +- {1e3 * learned.surface_error:.2f} mm")
print(f"volume {1e6 * found.volume:.1f} cm3 +- {100 * learned.volume_error:.1f} %, truth {1e6 * truth.volume:.1f} cm3")
off = np.linalg.norm(found.center_of_mass - truth.center_of_mass)
print(f"centre {found.center_of_mass.round(4)} m +- {1e3 * found.center_error:.2f} mm, truth {1e3 * off:.2f} mm away")
moments, true_moments = (1e6 * body.principal_moments.round(7) for body in (found, truth))
print(f"moments {moments} kg mm2 +- {100 * found.inertia_error:.1f} %, truth {true_moments}")

surface = learned.triangle_mesh()
figure, panels = plt.subplots(1, 2, figsize=(9.0, 3.6), layout="constrained")
panels[0].set(xticks=[], yticks=[], title="one of 24 pictures")
panels[0].imshow(views.rgb[8])
panels[1].set(xticks=[], yticks=[], title="the learned solid")
panels[1].imshow(draw_items([MeshItem("solid/solid", (0.8, 0.5, 0.25), surface.vertices, surface.faces)]))
figure.savefig(picture, dpi=75)
