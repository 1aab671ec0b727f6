"""A Gauss-Newton step within a trust region (dogleg), compiled.

In scaled coordinates x = q / D with D_i = H_ii^{-1/4} (Kurtz et al. 2023), the step is the Gauss-Newton step where it
is within the radius, else the point at the radius on the way from the best step along the gradient to it (J. Nocedal,
S. J. Wright, Numerical Optimization, 2nd edition, section 4.1). The square root H_ii^{-1/2} would make all diagonal
entries one, but the radius then holds back smooth motions of all steps, which cost little, as much as jerks of one:
half as many plans converged with it.
"""

from __future__ import annotations

import numpy as np

from morphit_ros.contact_planning.banded import factorise, multiply, solve
from morphit_ros.jit import lean_njit

# Added to the diagonal, as a share of it: coordinates that nothing asks for have none of their own.
_RIDGE = 1e-9


@lean_njit
def gauss_newton(band, gradient, factor, scale, newton, cauchy, work):  # type: ignore[no-untyped-def]
    """Fill both steps of the dogleg (R,) and the scale D; whether the Hessian is positive definite."""
    rows, last = band.shape[0], band.shape[1] - 1
    largest = 0.0
    for i in range(rows):
        largest = max(largest, band[i, last])
    for i in range(rows):
        band[i, last] += _RIDGE * (band[i, last] + 1e-6 * largest)
        scale[i] = 1.0 / np.sqrt(np.sqrt(band[i, last])) if band[i, last] > 0.0 else 1.0
        newton[i] = -gradient[i]
        cauchy[i] = -(scale[i] ** 2) * gradient[i]
    if not factorise(band, factor):
        return False
    solve(factor, newton)
    multiply(band, cauchy, work)
    steep, curved = 0.0, 0.0
    for i in range(rows):
        steep -= gradient[i] * cauchy[i]
        curved += cauchy[i] * work[i]
    for i in range(rows):
        cauchy[i] *= steep / curved if curved > 0.0 else 0.0
    return True


@lean_njit
def dogleg(band, gradient, scale, newton, cauchy, radius, step, work):  # type: ignore[no-untyped-def]
    """Fill the step (R,); returns the decrease that the model promises and the step's scaled length."""
    rows = len(step)
    long, short, mixed = 0.0, 0.0, 0.0
    for i in range(rows):
        n, c = newton[i] / scale[i], cauchy[i] / scale[i]
        long += n * n
        short += c * c
        mixed += n * c
    if long <= radius**2:
        share_c, share_n, length = 0.0, 1.0, np.sqrt(long)
    elif short >= radius**2:
        share_c, share_n, length = radius / np.sqrt(short), 0.0, radius
    else:
        # |c + s (n − c)| = radius.
        a, b, c = long - 2.0 * mixed + short, mixed - short, short - radius**2
        s = -c / (b + np.sqrt(b * b - a * c)) if b >= 0.0 else (-b + np.sqrt(b * b - a * c)) / a
        share_c, share_n, length = 1.0 - s, s, radius
    for i in range(rows):
        step[i] = share_c * cauchy[i] + share_n * newton[i]
    multiply(band, step, work)
    promised = 0.0
    for i in range(rows):
        promised -= step[i] * (gradient[i] + 0.5 * work[i])
    return promised, length
