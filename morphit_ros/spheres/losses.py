"""The six losses of MorphIt in torch, as the paper writes them: the reference of every faster form.

Samples: `interior` (I, 3) inside the mesh, `surface` (S, 3) on it with outward unit `normals`
(S, 3). Spheres: `centers` (N, 3), `radii` (N,). Gaps are signed distances from samples to spheres.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import relu

from morphit_ros.spheres.configuration import LossWeights


def signed_gaps(points: Tensor, centers: Tensor, radii: Tensor) -> Tensor:
    """‖p_i − c_k‖ − r_k, (P, N)."""
    squared = torch.addmm(
        (points * points).sum(1, keepdim=True) + (centers * centers).sum(1), points, centers.T, alpha=-2.0
    )
    # The floor keeps the gradient of the root finite where a sample meets a centre.
    return squared.clamp_min(1e-12).sqrt() - radii


def coverage_loss(interior_gaps: Tensor) -> Tensor:
    """(1/I) Σ_i relu(min_k(‖p_i−c_k‖ − r_k))."""
    return relu(interior_gaps.amin(1)).mean()


def overlap_loss(centers: Tensor, radii: Tensor) -> Tensor:
    """(1/N²) Σ_{j≠k} relu(r_j + r_k − ‖c_j−c_k‖)."""
    reach = radii[:, None] + radii[None, :]
    return _pair_mean(relu(reach - _center_distances(centers)))


def boundary_loss(surface_gaps: Tensor) -> Tensor:
    """(1/(S·N)) Σ_{s,k} relu(r_k − ‖q_s−c_k‖)."""
    return relu(-surface_gaps).mean()


def surface_loss(surface_gaps: Tensor) -> Tensor:
    """(1/S) Σ_s |min_k(‖q_s−c_k‖ − r_k)|."""
    return surface_gaps.amin(1).abs().mean()


def containment_loss(centers: Tensor, radii: Tensor) -> Tensor:
    """(1/N²) Σ_{j≠k} relu(r_k − ‖c_j−c_k‖ − r_j)²."""
    return _pair_mean(relu(radii[None, :] - _center_distances(centers) - radii[:, None]) ** 2)


def sqem_loss(surface: Tensor, normals: Tensor, centers: Tensor, radii: Tensor, surface_gaps: Tensor) -> Tensor:
    """(1/S) Σ_s ((q_s−c_k*)·n_s − r_k*)², k* the nearest sphere: spherical quadric error (Thiery 2013)."""
    nearest = surface_gaps.argmin(1)
    heights = ((surface - centers[nearest]) * normals).sum(1)
    return ((heights - radii[nearest]) ** 2).mean()


def total_loss(
    interior: Tensor, surface: Tensor, normals: Tensor, centers: Tensor, radii: Tensor, weights: LossWeights
) -> Tensor:
    """The weighted sum of the six losses."""
    surface_gaps = signed_gaps(surface, centers, radii)
    interior_gaps = signed_gaps(interior, centers, radii)
    return (
        weights.coverage * coverage_loss(interior_gaps)
        + weights.overlap * overlap_loss(centers, radii)
        + weights.boundary * boundary_loss(surface_gaps)
        + weights.surface * surface_loss(surface_gaps)
        + weights.containment * containment_loss(centers, radii)
        + weights.sqem * sqem_loss(surface, normals, centers, radii, surface_gaps)
    )


def _center_distances(centers: Tensor) -> Tensor:
    difference = centers[:, None] - centers[None, :]
    return ((difference * difference).sum(2) + 1e-18).sqrt()


def _pair_mean(values: Tensor) -> Tensor:
    """(1/N²) Σ over pairs of different spheres."""
    return (values.sum() - values.diagonal().sum()) / values.numel()
