"""Loops over vectors for `elementwise`, one for each public function; the last vector is filled."""

from __future__ import annotations

from . import bessel, divergence, gamma, skellam
from .compiled import cached_njit

_loop = cached_njit(nogil=True, error_model="numpy")


@_loop
def bessel_ratio(nu, z, out):
    for i in range(out.size):
        out[i] = bessel.bessel_ratio(nu[i], z[i])


@_loop
def log_hyp0f1_regularized(b, z, out):
    for i in range(out.size):
        out[i] = bessel.log_hyp0f1_regularized(b[i], z[i])


@_loop
def exp_digamma(x, out):
    for i in range(out.size):
        # Below, it underflows all the same; above, x - 1/2 is x. A NaN goes the second way.
        out[i] = gamma.exp_digamma(max(x[i], 1e-300)) if x[i] < 1e300 else x[i]


@_loop
def inverse_digamma(y, out):
    for i in range(out.size):
        out[i] = gamma.inverse_digamma(y[i])


@_loop
def skellam_divergence(x, rate0, rate1, out):
    for i in range(out.size):
        out[i] = divergence.divergence_of_any_size(x[i], rate0[i], rate1[i])


@_loop
def skellam_log_pmf(x, rate0, rate1, out):
    for i in range(out.size):
        out[i] = skellam.skellam_log_pmf(x[i], rate0[i], rate1[i])


@_loop
def smaller_total(x, rate0, rate1, out):
    for i in range(out.size):
        out[i] = skellam.smaller_total(x[i], rate0[i], rate1[i])
