"""How kernels are compiled: those that Python calls, those that only kernels call, and those that sum over points."""

from __future__ import annotations

from morphit_ros.jit import njit

# Kernels that Python calls. Arrays must be contiguous: each layout is another compilation.
entry = njit(cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True)

# Kernels that only kernels call. They get no wrapper for Python, which takes as long to compile as a small kernel:
# calling one of them from Python ends the process. Their arguments are no literals, as each value of a literal integer
# or boolean is another compilation: an array of size zero says that a result isn't wanted. A kernel is optimised again
# in each kernel that calls it, so long chains of calls are what takes time to compile.
inner = njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)

# Sums over points, of which the processor takes several at once if it may add in any order: for that they read rows of
# numbers, have no branches and sum in variables, not in arrays.
summing = njit(
    cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True,
    fastmath={"reassoc", "contract", "nsz"},
)  # fmt: skip

# What such a sum does at each point, as part of its loop.
summand = njit(
    cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=True,
    fastmath={"reassoc", "contract", "nsz"},
)  # fmt: skip
