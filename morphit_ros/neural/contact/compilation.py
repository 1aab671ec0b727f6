"""How kernels are compiled: those that Python calls, and those that only kernels call."""

from __future__ import annotations

import numba

# Kernels that Python calls. Arrays must be contiguous: each layout is another compilation.
entry = numba.njit(cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True)

# Kernels that only kernels call. They get no wrapper for Python, which takes as long to compile as a small kernel:
# calling one of them from Python ends the process. Their arguments are no literals, as each value of a literal integer
# or boolean is another compilation: an array of size zero says that a result isn't wanted.
inner = numba.njit(cache=True, nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
