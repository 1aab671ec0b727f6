"""The C++ geometry of morphit_moveit, compiled and with arrays."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import trimesh
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

PACKAGE = Path(__file__).parents[2] / "morphit_moveit"
SOURCES = (
    "solids", "triangle_mesh", "sphere_cover", "placed_spheres", "convex", "superovoid", "placed_superovoids",
    "plain_shapes",
)  # fmt: skip
Array = NDArray[np.float64]
EYE = np.eye(4)


def compiled(folder: Path) -> ctypes.CDLL:
    """The library, of what needs no MoveIt."""
    library = folder / "core.so"
    flags = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-isystem", "/usr/include/eigen3"]
    files = [Path(__file__).with_name("core.cpp"), *(PACKAGE / f"src/{name}.cpp" for name in SOURCES)]
    subprocess.run(
        ["c++", *flags, "-shared", f"-I{PACKAGE / 'include'}", *map(str, files), "-o", str(library)], check=True
    )
    loaded = ctypes.CDLL(str(library))
    loaded.solid_new.restype = loaded.mesh_new.restype = ctypes.c_void_p
    loaded.needed_growth.restype = loaded.superovoids_growth.restype = ctypes.c_double
    loaded.plain_cover.restype = loaded.deepest_in_solid.restype = loaded.deepest_in_body.restype = ctypes.c_size_t
    loaded.cone_corners.restype = loaded.boxes_of_mesh.restype = ctypes.c_size_t
    return loaded


def random_rotation(rng: np.random.Generator) -> Array:
    return np.asarray(Rotation.random(random_state=rng).as_matrix())


class Core:
    """The library with arrays."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self._made: list[ctypes.c_void_p] = []

    def solid(self, kind: int, *sizes: float) -> ctypes.c_void_p:
        self._made.append(ctypes.c_void_p(self._library.solid_new(kind, _array(sizes))))
        return self._made[-1]

    def mesh(self, mesh: trimesh.Trimesh) -> ctypes.c_void_p:
        problem = ctypes.create_string_buffer(200)
        faces = np.ascontiguousarray(mesh.faces, dtype=np.uint32)
        made = self._library.mesh_new(
            _array(mesh.vertices),
            _size(len(mesh.vertices)),
            ctypes.c_void_p(faces.ctypes.data),
            _size(len(faces)),
            problem,
        )
        if not made:
            raise ValueError(problem.value.decode())
        self._made.append(ctypes.c_void_p(made))
        return self._made[-1]

    def ask(self, solid: ctypes.c_void_p, points: Array, beyond: float = 1e9) -> Array:
        out = np.empty((len(points), 10))
        self._library.ask(solid, _array(points), _size(len(points)), ctypes.c_double(beyond), _array(out))
        return out

    def growth(self, spheres: Array, solid: ctypes.c_void_p, pose: Array = EYE) -> float:
        return float(self._library.needed_growth(_array(spheres), _size(len(spheres)), solid, _array(pose)))

    def cover(self, solid: ctypes.c_void_p, count: int, pose: Array = EYE) -> Array:
        out = np.empty((count, 5))
        made = self._library.plain_cover(solid, _array(pose), _size(count), _array(out))
        return out[:made]

    def against_solid(
        self, spheres: Array, at: Array, solid: ctypes.c_void_p, pose: Array, growth: float, decide: bool, limit: float,
        trust: bool = True,
    ) -> tuple[int, Array | None, int]:  # fmt: skip
        out, found = np.empty(10), (ctypes.c_int * 2)()
        answer = self._library.body_and_solid(
            _array(spheres), _size(len(spheres)), _array(at), ctypes.c_double(growth), int(trust), solid,
            _array(pose), int(decide), ctypes.c_double(limit), _array(out), found,
        )  # fmt: skip
        return answer, out if found[0] else None, found[1]

    def against_body(
        self, a: Array, at_a: Array, b: Array, at_b: Array, growth: float, limit: float, trust: bool = True,
        matters: bool = True,
    ) -> tuple[int, Array | None, int]:  # fmt: skip
        out, found = np.empty(10), (ctypes.c_int * 2)()
        answer = self._library.body_and_body(
            _array(a), _size(len(a)), _array(at_a), _array(b), _size(len(b)), _array(at_b), ctypes.c_double(growth),
            int(trust), int(matters), ctypes.c_double(limit), _array(out), found,
        )  # fmt: skip
        return answer, out if found[0] else None, found[1]

    def deepest_in_solid(
        self, spheres: Array, at: Array, solid: ctypes.c_void_p, pose: Array, growth: float, wanted: int
    ) -> Array:
        """Rows of distance, two points and normal of the deepest meetings."""
        out = np.empty((wanted, 10))
        made = self._library.deepest_in_solid(
            _array(spheres), _size(len(spheres)), _array(at), ctypes.c_double(growth), solid, _array(pose),
            _size(wanted), _array(out),
        )  # fmt: skip
        return out[:made]

    def deepest_in_body(self, a: Array, at_a: Array, b: Array, at_b: Array, growth: float, wanted: int) -> Array:
        out = np.empty((wanted, 10))
        made = self._library.deepest_in_body(
            _array(a), _size(len(a)), _array(at_a), _array(b), _size(len(b)), _array(at_b), ctypes.c_double(growth),
            _size(wanted), _array(out),
        )  # fmt: skip
        return out[:made]

    def touches(self, spheres: Array, at: Array, growth: float, center: Array, radius: float) -> bool:
        answer = self._library.body_touches(
            _array(spheres), _size(len(spheres)), _array(at), ctypes.c_double(growth), _array(center),
            ctypes.c_double(radius),
        )  # fmt: skip
        return bool(answer)

    def superovoid(self, numbers: Array, directions: Array, points: Array) -> tuple[Array, Array]:
        """Support points along directions, and whether the shape contains points."""
        out, problem = np.empty((len(directions), 4)), ctypes.create_string_buffer(200)
        self._library.superovoid_ask(
            _array(numbers), _array(directions), _array(points), _size(len(directions)), _array(out), problem
        )
        if problem.value:
            raise ValueError(problem.value.decode())
        return out[:, :3], out[:, 3] == 1.0

    def superovoids_growth(self, rows: Array, solid: ctypes.c_void_p, pose: Array = EYE) -> float:
        return float(self._library.superovoids_growth(_array(rows), _size(len(rows)), solid, _array(pose)))

    def superovoids_and_solid(
        self, rows: Array, at: Array, growth: float, solid: ctypes.c_void_p, pose: Array, limit: float = 1e9
    ) -> tuple[Array | None, float]:
        """Distance, two points and normal of the nearest meeting below the limit, and the bound by the solid's box."""
        out = np.empty(11)
        found = self._library.superovoids_and_solid(
            _array(rows), _size(len(rows)), _array(at), ctypes.c_double(growth), solid, _array(pose),
            ctypes.c_double(limit), _array(out),
        )  # fmt: skip
        return (out[:10] if found else None), out[10]

    def superovoids_and_superovoids(
        self, a: Array, at_a: Array, b: Array, at_b: Array, growth: float, limit: float = 1e9
    ) -> tuple[Array | None, float]:
        out = np.empty(11)
        found = self._library.superovoids_and_superovoids(
            _array(a), _size(len(a)), _array(at_a), _array(b), _size(len(b)), _array(at_b), ctypes.c_double(growth),
            ctypes.c_double(limit), _array(out),
        )  # fmt: skip
        return (out[:10] if found else None), out[10]

    def cone_corners(self, radius: float, length: float) -> Array:
        out = np.empty((100, 3))
        return out[: self._library.cone_corners(ctypes.c_double(radius), ctypes.c_double(length), _array(out))]

    def half_space(self, plane: Array) -> Array | None:
        """Pose of the half-space of a, b, c, d; None where that is no plane."""
        out = np.empty((4, 4))
        return out if self._library.half_space_pose(_array(plane), _array(out)) else None

    def is_convex(self, mesh: ctypes.c_void_p) -> bool:
        return bool(self._library.mesh_is_convex(mesh))

    def boxes(self, mesh: ctypes.c_void_p, most: int, finest: float) -> Array:
        """Lower and upper corners of boxes (N, 2, 3)."""
        out = np.empty((most, 2, 3))
        made = self._library.boxes_of_mesh(mesh, _size(most), ctypes.c_double(finest), _array(out))
        return out[:made]

    def close(self) -> None:
        for solid in self._made:
            self._library.solid_delete(solid)


_KEPT: list[Array] = []


def _array(values: object) -> ctypes.c_void_p:
    array = np.ascontiguousarray(values, dtype=np.float64)
    # It has to outlive the call; arrays that are written to are contiguous already and stay themselves.
    _KEPT[:] = [*_KEPT[-8:], array]
    return ctypes.c_void_p(array.ctypes.data)


_size = ctypes.c_size_t
