"""Faces that agree with their neighbours on which side is outside."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from morphit_ros.geometry.boundary import first_of_equal_rows, lower_vertices
from morphit_ros.geometry.transforms import Array
from morphit_ros.jit import njit

Faces = NDArray[np.int64]

# A mesh of which a greater share of faces has a twin with the other side out is meant to be seen from both sides.
_TWO_SIDED = 0.5


def one_sided_faces(faces: Faces) -> Faces:
    """The first of each two faces on the same vertices, if most of the faces are such twins; else all.

    Drawing programs store both sides of each face. Together they enclose nothing. A few twins, though, are the
    walls between parts, and have to stay.
    """
    first = first_of_equal_rows(np.sort(faces, axis=1)) == np.arange(len(faces))
    return faces[first] if np.count_nonzero(~first) > 0.5 * _TWO_SIDED * len(faces) else faces


def consistent_faces(faces: Faces, areas: Array) -> Faces:
    """The faces (F, 3), those turned over that disagree with the larger part of the surface that they belong to.

    Neighbours share an edge that no third face has. A surface that is consistent is left as it is, also where it is
    inside out as a whole: an inner wall has to be.
    """
    neighbors, agree = _neighbors(faces, int(faces.max()) + 1)
    if agree.all():
        return faces
    turned = _disagreeing(neighbors, agree, areas)
    return np.where(turned[:, None], faces[:, ::-1], faces)


@njit(cache=True, nogil=True)
def _neighbors(faces, vertex_count):  # type: ignore[no-untyped-def]
    """Neighbour (F, 3) across the edge from each corner to the next or -1, and whether it runs the other way there."""
    starts, cursor = lower_vertices(faces, vertex_count)
    edges = np.empty(3 * len(faces), dtype=np.int64)
    for f in range(len(faces)):
        for c in range(3):
            low = min(faces[f, c], faces[f, (c + 1) % 3])
            edges[cursor[low]] = 3 * f + c
            cursor[low] += 1
    neighbors = np.full((len(faces), 3), -1, dtype=np.int64)
    agree = np.ones((len(faces), 3), dtype=np.bool_)
    uses = np.zeros(vertex_count, dtype=np.int64)
    partner = np.full(vertex_count, -1, dtype=np.int64)
    for low in range(vertex_count):
        for place in range(starts[low], starts[low + 1]):
            f, c = edges[place] // 3, edges[place] % 3
            uses[max(faces[f, c], faces[f, (c + 1) % 3])] += 1
        for place in range(starts[low], starts[low + 1]):
            f, c = edges[place] // 3, edges[place] % 3
            high = max(faces[f, c], faces[f, (c + 1) % 3])
            if uses[high] == 2:
                if partner[high] < 0:
                    partner[high] = edges[place]
                else:
                    g, d = partner[high] // 3, partner[high] % 3
                    neighbors[f, c], neighbors[g, d] = g, f
                    agree[f, c] = agree[g, d] = faces[f, c] != faces[g, d]
        for place in range(starts[low], starts[low + 1]):
            f, c = edges[place] // 3, edges[place] % 3
            high = max(faces[f, c], faces[f, (c + 1) % 3])
            uses[high], partner[high] = 0, -1
    return neighbors, agree


@njit(cache=True, nogil=True)
def _disagreeing(neighbors, agree, areas):  # type: ignore[no-untyped-def]
    count = len(neighbors)
    seen = np.zeros(count, dtype=np.bool_)
    turned = np.zeros(count, dtype=np.bool_)
    surface = np.empty(count, dtype=np.int64)
    for first in range(count):
        if seen[first]:
            continue
        seen[first] = True
        surface[0] = first
        size, done = 1, 0
        straight, reversed_ = 0.0, 0.0
        while done < size:
            f = surface[done]
            done += 1
            if turned[f]:
                reversed_ += areas[f]
            else:
                straight += areas[f]
            for c in range(3):
                g = neighbors[f, c]
                if g >= 0 and not seen[g]:
                    seen[g] = True
                    turned[g] = turned[f] != (not agree[f, c])
                    surface[size] = g
                    size += 1
        if reversed_ > straight:
            for i in range(size):
                turned[surface[i]] = not turned[surface[i]]
    return turned
