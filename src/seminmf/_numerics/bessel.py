"""Modified Bessel functions of the first kind, as the integer likelihood needs them.

With n = |x| and z = 2 sqrt(rate0 rate1), a cell asks for the expected value of the smaller Poisson
total given x, which is P_n(z) / 2 for P_nu = z I_{nu+1} / I_nu, and for the logarithm of I_n(z)
relative to its leading behaviour (`bessel_cell`). Both come from an expansion, uniform in z, at the
raised order nu = n + N, and from the recurrence P_k = z^2 / (2 k + 2 + P_{k+1}) back down.

The recurrence needs no division if it runs on numerators and denominators. With P_{n+k} = A_k / B_k
and B_N = 1 it reads A_{k-1} = z^2 B_k, B_{k-1} = 2 (n+k) B_k + A_k, which is

    B_{k-1} = a_k B_k + g B_{k+1},    a_k = 2 (n+k) / h,    g = (z/h)^2,    h = nu + s,

once everything is divided by h = nu + sqrt(nu^2 + z^2), so that nothing can overflow. Then
P_n = (z^2 / h) B_1 / B_0, and B_0 is the product of all (2 (n+k) + P_{n+k}) / h, which is what
leads from I_nu to I_n.

The expansions are `ratio` and `debye` of `tools/bessel_coefficients.py`, polynomials in t = 1/s
and in q = (nu/s)^2. Their errors are below those of the rounding.

References
----------
.. [1] F. W. J. Olver, "Asymptotics and special functions", 1974, section 10.7.
.. [2] W. Gautschi and J. Slavik, "On the computation of modified Bessel function ratios",
   Mathematics of Computation 32, 1978.
"""

from __future__ import annotations

import math

from .compilation import (
    by_precision,
    looping_function,
    polynomial2,
    scalar_function,
    strict_function,
)
from .elementary import (
    LN2_HIGH,
    LN2_LOW,
    frexp_sqrt2,
    ldexp2,
    log,
    log_in_two_parts,
    log_ratio_tail,
    log_tail,
    two_product,
    two_sum,
)

# Pairs are for float32 and float64.
_STEPS = (6, 12)  # N
_LEAST_COMPLEMENT = (1e-6, 1e-14)  # of w, in `_atanh_tail`; 1 + 2/this is still exact

# fmt: off
# N = 6, error 2e-08.
_RATIO_SINGLE = (
    (0.0,),
    (-0.4999952798037008,),
    (-0.12530273250973512, 0.6225586131965868,),
    (-0.1295208554310626, 1.756663303756513, -2.3613540022253017,),
)
# N = 6, error 5e-08.
_DEBYE_SINGLE = (
    (0.0,),
    (0.124995572008182, -0.2083285775532415,),
    (0.06287846468009026, -0.3746274748829604, 0.3117613749676474,),
    (0.06345168920236362, -0.943244635188041, 2.0774617894139222, -1.1950085912309287,),
)
# N = 12, error 3e-16.
_RATIO_DOUBLE = (
    (0.0,),
    (-0.5000000000012521,),
    (-0.12499999905275194, 0.6250001041584523,),
    (-0.125000229533429, 1.4999556234720846, -1.8747740178523131,),
    (-0.1952950247984422, 4.155037503168404, -12.137644991940702, 8.699718074584327,),
    (-0.4053639918308503, 12.839417345157017, -61.889852359182335, 95.25443110706996,
     -45.7605667103857,),
    (-1.1859920733883214, 65.50974689651214, -537.0982464955719, 1529.1149748341318,
     -1779.510512586239, 728.0065888376085,),
)
# N = 12, error 2e-16.
_DEBYE_DOUBLE = (
    (0.0,),
    (0.12500000000067454, -0.2083333333339681,),
    (0.0624999994828229, -0.3750000515030348, 0.312500052011421,),
    (0.06510429232726876, -0.8296654680863539, 1.7264273724029209, -0.9590884182654834,),
    (0.10155271814848645, -2.2220361373978292, 8.326019961968965, -10.653050295826604,
     4.447513731591085,),
    (0.20916006917574098, -6.745453442904267, 38.063819988758326, -80.10913626085025,
     71.93784412298399, -23.35702764110613,),
    (0.6061652114003431, -33.70737482104099, 304.0945386350803, -1042.0943023161756,
     1668.060158795317, -1263.734004776604, 366.7748120757922,),
    (-0.02226120738026565, -0.554660234647628, 8.708144848245876, -42.3680246119129,
     96.78506358559069, -114.43207392024794, 67.93085331202491, -16.04638010046731,),
    (0.720639365439687, -11.53696395819716, 96.42803711136422, -472.9297090843355,
     1357.19257580891, -2285.606698320322, 2219.933558622591, -1150.7471348239415,
     246.5453455931697,),
)
# fmt: on
_RATIO = (_RATIO_SINGLE, _RATIO_DOUBLE)
_DEBYE = (_DEBYE_SINGLE, _DEBYE_DOUBLE)


# The series themselves, for s of LARGE and more, and of MEDIUM and more: what they leave out is
# below 1e-14 and 1e-13.
LARGE = 600.0
MEDIUM = 60.0
_RATIO_SERIES = (
    (0.0,),
    (-1 / 2,),
    (-1 / 8, 5 / 8),
    (-1 / 8, 3 / 2, -15 / 8),
    (-25 / 128, 531 / 128, -1547 / 128, 1105 / 128),
    (-13 / 32, 213 / 16, -531 / 8, 1695 / 16, -1695 / 32),
    (-1073 / 1024, 50049 / 1024, -186821 / 512, 493889 / 512, -1076725 / 1024, 414125 / 1024),
    (-103 / 32, 405 / 2, -8385 / 4, 16167 / 2, -457695 / 32, 11805.0, -59025 / 16),
)
_DEBYE_SERIES = (
    (0.0,),
    (1 / 8, -5 / 24),
    (1 / 16, -3 / 8, 5 / 16),
    (25 / 384, -531 / 640, 221 / 128, -1105 / 1152),
    (13 / 128, -71 / 32, 531 / 64, -339 / 32, 565 / 128),
    (1073 / 5120, -50049 / 7168, 186821 / 4608, -44899 / 512, 82825 / 1024, -82825 / 3072),
    (103 / 192, -405 / 16, 1677 / 8, -5389 / 8, 65385 / 64, -11805 / 16, 19675 / 96),
    (
        375733 / 229376,
        -3407083 / 32768,
        38038059 / 32768,
        -168434443 / 32768,
        1852155413 / 163840,
        -432038457 / 32768,
        256406305 / 32768,
        -1282031525 / 688128,
    ),
)
LARGE_SERIES = (_RATIO_SERIES[:5], _DEBYE_SERIES[:5])
MEDIUM_SERIES = (_RATIO_SERIES, _DEBYE_SERIES)


@scalar_function
def _raise_and_recur(n, z_squared):
    """B_0 and B_1, with s, t = 1/s, 1/h and q of the raised order."""
    real = type(n)
    steps = by_precision(n, _STEPS)
    nu = n + real(steps)
    s = math.sqrt(nu * nu + z_squared)
    h = nu + s
    inverse = real(1.0) / (s * h)
    t = h * inverse
    inverse_h = s * inverse
    p = nu * t
    q = p * p
    series = polynomial2(t, q, by_precision(n, _RATIO))
    g = z_squared * inverse_h * inverse_h
    start = g * (real(1.0) + (real(1.0) + p) * series)  # P_nu / h
    b0, b1 = _recur(n, g, inverse_h + inverse_h, start)
    return b0, b1, s, t, inverse_h, q


@looping_function
def _recur(n, g, step, start):
    """B_0 and B_1 from A_N = `start` and B_N = 1, with a_k = step (n + k).

    The chain is cut in the middle, M: the lower part on its own, K(a_1..a_M) and K(a_2..a_M), is
    known before the expansion is. Such chains wait for the latency of every operation, so three
    short ones beat one long one, although they do more.
    """
    real = type(n)
    steps = by_precision(n, _STEPS)
    middle = steps // 2
    base = step * n
    k0, k1 = base + step, real(1.0)  # K(a_1..a_k) and K(a_1..a_{k-1})
    l0, l1 = real(1.0), real(0.0)  # K(a_2..a_k) and K(a_2..a_{k-1})
    for k in range(2, middle + 1):
        a = base + step * real(k)
        k0, k1 = a * k0 + g * k1, k0
        l0, l1 = a * l0 + g * l1, l0
    b0, b1 = base + step * real(steps) + start, real(1.0)
    for k in range(steps - 1, middle, -1):
        a = base + step * real(k)
        b0, b1 = a * b0 + g * b1, b0
    b1 = g * b1
    return k0 * b0 + k1 * b1, l0 * b0 + l1 * b1


@scalar_function
def smaller_total(n, sigma):
    """Mean of the smaller Poisson total given their difference +-n; sigma = rate0 rate1.

    It is 2 sigma / (nu + Y_nu(z)) with nu = n + 1 and z = 2 sqrt(sigma), half of P_n(z).
    """
    real = type(n)
    b0, b1, _, _, inverse_h, _ = _raise_and_recur(n, real(4.0) * sigma)
    return real(2.0) * sigma * inverse_h * b1 / b0


@scalar_function
def bessel_cell(n, sigma):
    """`smaller_total`, and G = ln( I_n(z) e^{-s} ((n + s)/z)^n ), s = sqrt(n^2 + z^2).

    G is about -ln(2 pi s) / 2, and what the divergence leaves of the likelihood:
    ln P(x | rate0, rate1) = -D(x | rate0, rate1) + G(|x|, 2 sqrt(rate0 rate1)).

    With primes at the raised order, and w = N / (s' + s), both s' - s = (2 n + N) w and
    h' / (n + s) = (1 + w) / (1 - w) hold exactly, so that

        G = N w - n (2 atanh(w) - 2 w) + ln(B_0 / sqrt(2 pi s')) + debye.

    All terms are of order 1: there is nothing to cancel.
    """
    real = type(n)
    z_squared = real(4.0) * sigma
    b0, b1, raised, t, inverse_h, q = _raise_and_recur(n, z_squared)
    smaller = real(2.0) * sigma * inverse_h * b1 / b0
    s = math.sqrt(n * n + z_squared)
    steps = real(by_precision(n, _STEPS))
    w = steps / (raised + s)
    orders = steps * w - n * _atanh_tail(w)
    debye = polynomial2(t, q, by_precision(n, _DEBYE))
    scale = log(b0 * b0 * t * real(0.5 / math.pi))
    return smaller, real(0.5) * scale + (orders + debye)


@scalar_function
def skellam_cell(n, side, other):
    """What a difference of size n >= 0 tells of its two Poisson totals, and its ln P.

    `side` is the rate of its sign, `other` that of the opposite. The first two results are the
    totals' means given n, divided by their rates: with a `smaller_total` of 2 sigma B_1 / (h B_0)
    and another that is n larger, neither needs sigma.

    ln P = -D + G, where both have a logarithm times n: of (n + s)/(2 side) and of h/(n + s), with
    h and s' at the raised order. They are taken together, as that of h/(2 side). With
    v = (n - side + other) / (s + side + other) of the divergence and w of G,

        ln P = N w - (n - side + other) v - n (2 atanh(u) - 2 v - 2 w) + ln(B_0 / sqrt(2 pi s'))
               + debye,    u = (v + w) / (1 + v w),

    in which 2 u - 2 v - 2 w = -2 u v w: what is left after the first order does not cancel.
    Divisions decide the speed, so that those without a common factor share one.
    """
    real = type(side)
    one, two = real(1.0), real(2.0)
    z_squared = real(4.0) * (side * other)
    b0, b1, raised, t, inverse_h, q = _raise_and_recur(n, z_squared)
    quotient = one / (b0 * side)
    smaller = two * inverse_h * (b1 * side * quotient)  # divided by sigma
    u_side = n * b0 * quotient + other * smaller
    u_other = side * smaller

    s = math.sqrt(n * n + z_squared)
    steps = real(by_precision(n, _STEPS))
    residual = (max(n, other) - side) + min(n, other)  # near a fit with one rounding
    lower, upper = s + (side + other), raised + s
    quotient = one / (lower * upper)
    v, w = residual * upper * quotient, steps * lower * quotient
    both = v * w
    # n = 0 and a vanishing rate: u does not matter, but must be a number.
    u = (v + w) / max(one + both, real(by_precision(n, _LEAST_COMPLEMENT)))
    tail = log_ratio_tail(n + steps + raised, two * side, u) - two * u * both
    debye = polynomial2(t, q, by_precision(n, _DEBYE))
    scale = log(b0 * b0 * t * real(0.5 / math.pi))
    value = real(0.5) * scale + ((steps * w - residual * v) - n * tail) + debye
    return u_side, u_other, value


@scalar_function
def _atanh_tail(w):
    """2 atanh(w) - 2 w for 0 <= w < 1; finite at w = 1, where its factor n is 0.

    2 atanh(w) = ln(r), r = (1 + w)/(1 - w) = c (1 + v)/(1 - v) with c the power of 2 next to r.
    v is computed from w, not from r, whose rounding error the factor n would magnify.
    """
    real = type(w)
    one = real(1.0)
    e, _ = frexp_sqrt2((one + w) / max(one - w, real(by_precision(w, _LEAST_COMPLEMENT))))
    c = ldexp2(e)
    v = ((one - c) + (one + c) * w) / ((one + c) + (one - c) * w)
    low = e * real(by_precision(w, LN2_LOW))
    high = e * real(by_precision(w, LN2_HIGH))
    return high + (real(2.0) * (v - w) + (log_tail(v) + low))


@scalar_function
def bessel_ratio(nu, z):
    """R_nu(z) = I_{nu+1}(z) / I_nu(z) for nu, z >= 0, float64."""
    # For huge arguments it is z / (nu + sqrt(nu^2 + z^2)), which a common factor does not change.
    larger = max(nu, z)
    shrink = 1e100 / larger if larger > 1e100 else 1.0
    nu = shrink * nu
    z = shrink * z
    b0, b1, _, _, inverse_h, _ = _raise_and_recur(nu, z * z)
    return z * inverse_h * b1 / b0


@strict_function
def log_hyp0f1_regularized(b, x):
    """ln F_b(x), F_b(x) = 0F1(; b; x) / Gamma(b), for b > 0 and x >= 0, float64.

    F_b = b F_{b+1} + x F_{b+2} and F_{n+1}(x) = I_n(z) (2/z)^n with z = 2 sqrt(x), so that n = b
    serves b < 1 too, and ln F_b = s - n ln((n+s)/2) + G + ln(b + smaller total).
    """
    larger = max(b, math.sqrt(x))
    if larger > 1e100:
        # Only the leading part is left. Taken relative to `larger`, it cannot overflow.
        size = b / larger
        leading, leading_low = _leading_part(size, 4.0 * (x / larger) / larger)
        return larger * (leading + (leading_low - size * math.log(larger)))
    smaller, g = bessel_cell(b, x)
    leading, leading_low = _leading_part(b, 4.0 * x)
    return leading + (leading_low + (g + log(b + smaller)))


@strict_function
def _leading_part(n, z_squared):
    """s - n ln((n + s)/2) with s = sqrt(n^2 + z^2), as a sum of two numbers.

    The difference may be of order 1 while its terms are huge: every rounding counts.
    """
    n_squared, n_squared_low = two_product(n, n)
    total, total_low = two_sum(n_squared, z_squared)
    s = math.sqrt(total)
    square, square_low = two_product(s, s)
    s_low = ((total - square) + (total_low + n_squared_low - square_low)) / (2.0 * max(s, 1e-300))
    h, h_low = two_sum(n, s)
    logarithm, logarithm_low = log_in_two_parts(0.5 * h)
    product, product_low = two_product(n, logarithm)
    product_low = product_low + n * (logarithm_low + (h_low + s_low) / h)
    return s - product, s_low - product_low
