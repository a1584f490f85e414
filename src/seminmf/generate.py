"""Draws from the generative model (paper, "The generative model")."""

from numbers import Integral
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from seminmf._model import sharing as _sharing
from seminmf._model.sharing import Sharing
from seminmf._numerics.random import draw_dirichlet, draw_log_gamma

# Both (J, K) and (2, K, I) count the components on this axis.
_COMPONENT_AXIS = 1

# NumPy's Poisson generator stops short of the largest 64-bit integer.
_LARGEST_POISSON_RATE = 9e18


def sample_skellam_snmf(
    n_samples: int,
    n_features: int,
    n_components: int,
    *,
    M: float = 1,
    activation_shape: ArrayLike = 1.0,
    activation_rate: ArrayLike = 0.01,
    atom_shape: ArrayLike = 1.0,
    activation_shape_sharing: Sharing | None = None,
    activation_rate_sharing: Sharing | None = None,
    atom_sharing: Sharing | None = None,
    noise: ArrayLike = 0.0,
    missing: float = 0.0,
    random_state: Any = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Draw data and parameters from the generative model of Skellam-SNMF.

    Each component's atoms follow a Dirichlet distribution over signs and features together, each
    activation a gamma distribution, and each cell of ``M * X`` a Skellam distribution whose two
    rates are `M` times those of ``activations @ atoms``. One draw of the parameters serves all
    `M` matrices that `X` is the mean of.

    Parameters
    ----------
    n_samples, n_features, n_components : int
        J, I and K.
    M : int or inf, default=1
        1 gives integers, a larger number multiples of 1 / M, and ``np.inf`` noise-free data,
        ``X = activations @ (atoms[0] - atoms[1])``.
    activation_shape, activation_rate : float or array-like, default=1.0 and 0.01
        Parameters of the gamma distribution: positive, broadcast to (J, K).
    atom_shape : float or array-like, default=1.0
        Parameters of the Dirichlet distribution: positive, broadcast to (2, K, I).
    activation_shape_sharing, activation_rate_sharing, atom_sharing : \
            {"all", "component", "entry"} or array-like of int, default=None
        With a sharing map, the parameter of that name is a vector of hyperparameter values, and
        the map says which of them each cell takes: one for all, one for each component, one for
        each cell, or an integer array of the parameter's shape that holds the positions.
    noise : float or array-like, default=0.0
        Standard deviation of noise that is no component's, at least 0, broadcast to (I,): a rate
        of M ``noise`` ² / 2 in both signs. With ``M=np.inf`` it is normal.
    missing : float, default=0.0
        Share of the cells of `X`, from 0 up to but not including 1, that are set to NaN. They are
        chosen at random, and last: the other values do not depend on `missing`.
    random_state : int, RandomState instance or None, default=None
        Pass an int for reproducible draws.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The data; NaN marks a gap.
    atoms : ndarray of shape (2, n_components, n_features)
        Positive and negative part of each component; ``atoms[:, k, :]`` sums to 1.
    activations : ndarray of shape (n_samples, n_components)

    Examples
    --------
    >>> from seminmf import sample_skellam_snmf
    >>> X, atoms, activations = sample_skellam_snmf(4, 3, 2, random_state=0)
    >>> X.shape, atoms.shape, activations.shape
    ((4, 3), (2, 2, 3), (4, 2))
    >>> bool((X == X.round()).all())
    True

    A strong first component and a weak second one:

    >>> _, _, activations = sample_skellam_snmf(
    ...     1000,
    ...     3,
    ...     2,
    ...     activation_shape=5.0,
    ...     activation_rate=[0.01, 0.1],
    ...     activation_rate_sharing="component",
    ...     random_state=0,
    ... )
    >>> print(activations.mean(axis=0).round(-1))
    [500.  50.]
    """
    J = _count("n_samples", n_samples)
    I = _count("n_features", n_features)
    K = _count("n_components", n_components)
    M = _number_of_matrices(M)
    missing = _share("missing", missing)
    deviation = _deviation(noise, I)
    activation_shape = _prior(
        "activation_shape", activation_shape, activation_shape_sharing, (J, K)
    )
    activation_rate = _prior("activation_rate", activation_rate, activation_rate_sharing, (J, K))
    atom_shape = _prior("atom_shape", atom_shape, atom_sharing, (2, K, I))
    rng = check_random_state(random_state)

    atoms = draw_dirichlet(atom_shape, rng, axes=(0, 2))
    activations = _gamma(activation_shape, activation_rate, rng)
    _check_range(activations, M)
    X = _observe(activations @ atoms, M, deviation, rng)
    _hide(X, missing, rng)
    return X, atoms, activations


def _gamma(
    shape: NDArray[np.float64], rate: NDArray[np.float64], rng: RandomState
) -> NDArray[np.float64]:
    with np.errstate(over="ignore"):  # _check_range has a clearer word for infinity
        return np.exp(draw_log_gamma(shape, rng) - np.log(rate))


def _observe(
    rates: NDArray[np.float64], M: float, deviation: NDArray[np.float64], rng: RandomState
) -> NDArray[np.float64]:
    """X from its two rate matrices, an array of shape (2, J, I), and the noise of features."""
    if M == np.inf:
        means = rates[0] - rates[1]
        return means + deviation * rng.normal(size=means.shape) if deviation.any() else means
    counts = rng.poisson(M * (rates + M * deviation**2 / 2))
    return (counts[0] - counts[1]) / M


def _hide(X: NDArray[np.float64], share: float, rng: RandomState) -> None:
    n_hidden = round(share * X.size)
    if n_hidden:
        X.flat[rng.choice(X.size, n_hidden, replace=False)] = np.nan


def _check_range(activations: NDArray[np.float64], M: float) -> None:
    # Atoms are at most 1, so no rate exceeds the sum of its sample's activations.
    limit = np.finfo(np.float64).max if M == np.inf else _LARGEST_POISSON_RATE / M
    with np.errstate(over="ignore"):
        largest = activations.sum(axis=1).max()
    if largest > limit:
        raise ValueError(
            f"activation_rate is too small for activation_shape: the activations of a sample sum "
            f"to {largest:.3g}, and M={M} accepts sums up to {limit:.3g}."
        )


def _count(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name} must be an integer of at least 1, found {value!r}.")
    return int(value)


def _deviation(noise: ArrayLike, n_features: int) -> NDArray[np.float64]:
    """Standard deviations of the features' noise."""
    try:
        values = np.broadcast_to(np.asarray(noise, dtype=np.float64), (n_features,))
    except (TypeError, ValueError):
        raise ValueError(
            f"noise must be a number or broadcast to ({n_features},), found {noise!r}."
        ) from None
    if not np.all((values >= 0) & (values < np.inf)):
        raise ValueError(f"noise must be at least 0 and finite, found {noise!r}.")
    return values


def _number_of_matrices(M: Any) -> float:
    if isinstance(M, float) and M == np.inf:
        return np.inf
    if isinstance(M, bool) or not isinstance(M, Integral) or M < 1:
        raise ValueError(f"M must be an integer of at least 1 or np.inf, found {M!r}.")
    return int(M)


def _share(name: str, value: object) -> float:
    if not isinstance(value, float | int | np.floating) or not 0 <= value < 1:
        raise ValueError(
            f"{name} must be a number from 0 up to but not including 1, found {value!r}."
        )
    return float(value)


def _prior(
    name: str, value: ArrayLike, sharing: Sharing | None, shape: tuple[int, ...]
) -> NDArray[np.float64]:
    """A hyperparameter for each cell of a parameter."""
    try:
        values = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} must be a number or an array of numbers, found {value!r}."
        ) from None
    accepted = (values > 0) & (values < np.inf)
    if not accepted.all():
        found = values[~accepted].flat[0]
        raise ValueError(f"{name} must be positive and finite, found {found}.")
    if sharing is not None:
        map_name = "atom_sharing" if name == "atom_shape" else f"{name}_sharing"
        return _sharing.expand(
            values, _sharing.labels(sharing, shape, _COMPONENT_AXIS, name=map_name), name=name
        )
    try:
        return np.broadcast_to(values, shape)
    except ValueError:
        raise ValueError(
            f"{name} has shape {values.shape}, which does not broadcast to {shape}."
        ) from None
