"""The three planners of the DISF paper as published, for comparison: DISF, VISF, CMA-ES.

They fit from one start pose with the correspondences of that pose, check nothing against the object, the table or the
robot, and return one grasp. `morphit_ros.grasping.methods` puts them behind one interface with this package's planner.

    surface.py     the object's surface and the pad grid          frames.py       published frames ↔ ours
    matching.py    the correspondences                            start_table.py  the hand-picked starts
    disf.py, visf.py, cma_es.py   the planners                    protocols.py    starts: the paper's, or generic ones
    fit.py         what they share: weights, energies, result     clusters.py     k-means
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from morphit_ros.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from morphit_ros.grasping.published.cma_es import CmaEsConfig, fit_cma_es
    from morphit_ros.grasping.published.disf import fit_published_disf
    from morphit_ros.grasping.published.fit import PublishedConfig, PublishedFit
    from morphit_ros.grasping.published.protocols import GenericConfig, GenericProtocol, PaperProtocol, StartPose
    from morphit_ros.grasping.published.surface import SURFACES, SurfaceConfig, prepare_surface
    from morphit_ros.grasping.published.visf import VisfConfig, fit_visf
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "cma_es": ("CmaEsConfig", "fit_cma_es"),
            "disf": ("fit_published_disf",),
            "fit": ("PublishedConfig", "PublishedFit"),
            "protocols": ("GenericConfig", "GenericProtocol", "PaperProtocol", "StartPose"),
            "surface": ("SURFACES", "SurfaceConfig", "prepare_surface"),
            "visf": ("VisfConfig", "fit_visf"),
        },
    )

__all__ = [
    "SURFACES",
    "CmaEsConfig",
    "GenericConfig",
    "GenericProtocol",
    "PaperProtocol",
    "PublishedConfig",
    "PublishedFit",
    "StartPose",
    "SurfaceConfig",
    "VisfConfig",
    "fit_cma_es",
    "fit_published_disf",
    "fit_visf",
    "prepare_surface",
]
