"""The three planners of the DISF paper as published, DISF, VISF, CMA-ES, and the sampler of GPD, for comparison.

Those of the paper fit from one start pose with the correspondences of that pose, check nothing against the object, the
table or the robot, and return one grasp. `methods` puts them behind one interface with this project's planner.

    surface.py     the object's surface and the pad grid          frames.py       published frames ↔ ours
    matching.py    the correspondences                            start_table.py  the hand-picked starts
    disf.py, visf.py, cma_es.py   the planners                    protocols.py    starts: the paper's, or generic ones
    gpd.py         the sampler of GPD, from its paper            grasp_files.py  grasps that other programs wrote
    closing.py     the grasp that fingers make at a pose
    fit.py         what they share: weights, energies, result     clusters.py     k-means
"""

from morphit_bench.grasping.cma_es import CmaEsConfig, fit_cma_es
from morphit_bench.grasping.disf import fit_published_disf
from morphit_bench.grasping.fit import PublishedConfig, PublishedFit
from morphit_bench.grasping.protocols import GenericConfig, GenericProtocol, PaperProtocol, StartPose
from morphit_bench.grasping.surface import SURFACES, ObservedSurfaceConfig, prepare_surface
from morphit_bench.grasping.visf import VisfConfig, fit_visf

__all__ = [
    "SURFACES",
    "CmaEsConfig",
    "GenericConfig",
    "GenericProtocol",
    "ObservedSurfaceConfig",
    "PaperProtocol",
    "PublishedConfig",
    "PublishedFit",
    "StartPose",
    "VisfConfig",
    "fit_cma_es",
    "fit_published_disf",
    "fit_visf",
    "prepare_surface",
]
