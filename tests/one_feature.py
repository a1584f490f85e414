"""The evidence of a model with one component and one feature, by quadrature.

The share θ of the positive sign then follows a beta distribution, λ_j a gamma distribution, and the
two rates of x_j are θ λ_j and (1 − θ) λ_j.
"""

import numpy as np
import reference
from scipy import stats
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import gamma, ive

ONE_FEATURE_PRIORS = [
    {"activation_shape": 1.0, "activation_rate": 0.2, "atom_shape": (2.0, 1.0)},
    {"activation_shape": 3.0, "activation_rate": 1.5, "atom_shape": (1.0, 1.0)},
    {"activation_shape": 0.7, "activation_rate": 0.5, "atom_shape": (1.5, 4.0)},
]
ONE_FEATURE_DATA = [(0.0,), (3.0,), (-5.0,), (2.0, -1.0), (4.0, np.nan)]


def settings_of(prior, likelihood):
    atom_shape = np.reshape(prior["atom_shape"], (2, 1, 1))
    return prior | {"atom_shape": atom_shape, "likelihood": likelihood}


def converged_bound(x, prior, likelihood):
    """The best bound that variational Bayes finds."""
    X = np.reshape(x, (-1, 1))
    settings = settings_of(prior, likelihood)
    state = np.full(X.shape, 2.0), np.reshape((2.0, 1.5), (2, 1, 1))
    for _ in range(200):
        state = reference.vb_iteration(X, *state, **settings)
    return reference.vb_bound(X, *state, **settings)


def skellam_pmf(x, rate0, rate1):
    z = 2 * np.sqrt(rate0 * rate1)
    return (rate0 / rate1) ** (x / 2) * np.exp(z - rate0 - rate1) * ive(abs(x), z)


def log_evidence(x, prior):
    """ln P(x₁, x₂, …) by quadrature; a gap has probability 1."""
    share = stats.beta(*prior["atom_shape"])
    shape, rate = prior["activation_shape"], prior["activation_rate"]

    def cell(value, theta):
        def density(v):
            # λ = v^(1/shape) takes the singularity at 0 out of the gamma density.
            activation = v ** (1 / shape)
            prior_density = np.exp(-rate * activation) * rate**shape / gamma(shape + 1)
            return prior_density * skellam_pmf(value, theta * activation, (1 - theta) * activation)

        return quad(density, 0, np.inf)[0]

    def all_cells(theta):
        return share.pdf(theta) * np.prod([cell(value, theta) for value in x if value == value])

    return np.log(quad(all_cells, 0, 1, epsrel=1e-5)[0])


def evidence_rate(x, prior):
    """The limit of (1/M) ln P(M x) over M independent draws of the parameters.

    M x is then a sum of M independent draws from the prior predictive distribution, so the limit
    is minus its Cramér rate function: the Legendre transform of ln E exp(t · x).
    """
    x = np.array([value for value in x if value == value])
    share = stats.beta(*prior["atom_shape"])
    shape, rate = prior["activation_shape"], prior["activation_rate"]

    def log_mgf(t):
        def integrand(theta):
            # E exp(t x) is exp(λ s) given θ and λ, and (1 − s/rate)^−shape given θ.
            s = theta * np.expm1(t) + (1 - theta) * np.expm1(-t)
            return share.pdf(theta) * np.prod((1 - s / rate) ** -shape)

        return np.log(quad(integrand, 0, 1)[0])

    # The moment generating function is finite where both exp(±t) − 1 are below the rate.
    edge = np.log1p(rate) * (1 - 1e-4)
    best = minimize(lambda t: log_mgf(t) - t @ x, np.zeros(x.size), bounds=[(-edge, edge)] * x.size)
    return best.fun
