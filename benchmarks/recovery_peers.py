"""Methods that find factors, ours and others'.

Each takes X (J, I), the number of components, a seed, and whether the components are known to be
≥ 0, which some can make use of; it returns factors, or None if it cannot, as with gaps.
"""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Callable, Iterator
from functools import cache, partial
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from recovery_scores import Factors, score
from scipy.stats import skew
from simulated import Draw
from sklearn.decomposition import NMF, PCA, DictionaryLearning, FastICA

from seminmf import EuclideanSNMF, SkellamSNMF
from seminmf.experiments._imputers import root_mean_square

# Alphas of dictionary learning, in units of the noise.
ALPHAS = (0.05, 0.1, 0.25, 0.6, 1.5)
# The paper's model, M = ∞, where that is not the only one.
PAPER = {"dispersion": 0.0, "activation_rate_prior": 1e-3}
# Features are also tried in units of their root mean squares, if these differ by more than this.
SMALL_RANGE = 3.0


# --- ours ---------------------------------------------------------------------------------------


def accepts(estimator: type, *names: str) -> bool:
    """Whether an estimator has these arguments."""
    return set(names) <= set(inspect.signature(estimator).parameters)


def ours(estimator: type, n_components: int, seed: int, **wanted: Any) -> Any:
    """An estimator with those of the settings that it accepts."""
    settings = {name: value for name, value in wanted.items() if accepts(estimator, name)}
    return estimator(n_components, random_state=seed, n_jobs=1, **settings)


def paper_settings() -> dict[str, float]:
    """Those of the paper's M = ∞; none if it is the default."""
    return PAPER if accepts(SkellamSNMF, *PAPER) else {}


def factors_of(model: Any) -> Factors:
    """What one of our models has found; activations times Σ|components| are its amounts."""
    if not hasattr(model, "amounts_"):
        return Factors(model.activations_, model.components_)
    sums = np.abs(model.components_).sum(axis=1)
    return Factors(model.amounts_ / np.where(sums > 0, sums, 1), model.components_)


def skellam(X: NDArray, K: int, seed: int, positive: bool) -> Factors:
    """The default."""
    return factors_of(ours(SkellamSNMF, K, seed, positive_components=positive).fit(X))


def paper(X: NDArray, K: int, seed: int, positive: bool) -> Factors:
    """The paper's model, M = ∞."""
    return factors_of(ours(SkellamSNMF, K, seed, **paper_settings()).fit(X))


def euclidean(X: NDArray, K: int, seed: int, positive: bool) -> Factors:
    """Least squares, the classic semi-NMF."""
    return factors_of(ours(EuclideanSNMF, K, seed).fit(X))


# --- scikit-learn's -----------------------------------------------------------------------------


def dictionary(X: NDArray, K: int, seed: int, positive: bool, alpha: float) -> Factors | None:
    """Least squares with alpha times the sum of the activations as a price; components of length 1.

    `DictionaryLearning` makes a first guess by SVD, and so has no use for a seed.
    """
    if np.isnan(X).any():
        return None
    model = DictionaryLearning(
        K,
        alpha=alpha,
        fit_algorithm="cd",
        transform_algorithm="lasso_cd",
        transform_alpha=alpha,
        transform_max_iter=5000,
        positive_code=True,
        positive_dict=positive,
        max_iter=500,
        tol=1e-6,
        random_state=seed,
    )
    return Factors(model.fit_transform(X), model.components_)


def dictionary_alpha_1(X: NDArray, K: int, seed: int, positive: bool) -> Factors | None:
    """With scikit-learn's default alpha, on data in units of their standard deviation."""
    unit = np.nanstd(X)
    found = dictionary(X / unit, K, seed, positive, alpha=1.0)
    return found and found.with_features_over(1 / unit)


def ica(X: NDArray, K: int, seed: int, positive: bool) -> Factors | None:
    """`FastICA`; signs such that codes are skewed to the right, and codes for X with its mean."""
    if np.isnan(X).any():
        return None
    model = FastICA(K, whiten="unit-variance", max_iter=1000, tol=1e-4, random_state=seed)
    signs = np.where(skew(model.fit_transform(X)) < 0, -1.0, 1.0)
    components = signs[:, None] * model.mixing_.T
    return Factors(np.maximum(X @ np.linalg.pinv(components), 0), components)


def nmf(X: NDArray, K: int, seed: int, positive: bool) -> Factors | None:
    """`NMF` on data from which their minimum is taken; with 0 for what is below, if W ≥ 0."""
    if np.isnan(X).any():
        return None
    nonnegative = np.maximum(X, 0) if positive else X - X.min()
    model = NMF(K, max_iter=1000, random_state=seed)
    return Factors(model.fit_transform(nonnegative), model.components_)


def pca(X: NDArray, K: int, seed: int, positive: bool) -> Factors | None:
    """`PCA`."""
    if np.isnan(X).any():
        return None
    model = PCA(K, random_state=seed)
    return Factors(model.fit_transform(X), model.components_)


# --- a prototype --------------------------------------------------------------------------------


@cache
def load_module(path: str) -> ModuleType:
    """A module from a file."""
    spec = importlib.util.spec_from_file_location("prototype", path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} is not a Python module")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def prototype(X: NDArray, K: int, seed: int, positive: bool, path: str) -> Factors:
    """`gfit3(X, K, learn=0.5)` of a file."""
    amounts, components, *_ = load_module(path).gfit3(X, K, seed=seed, learn=0.5)
    sums = np.abs(components).sum(axis=1)
    return Factors(amounts / np.where(sums > 0, sums, 1), components)


# --- all methods, with what they may know of the truth ------------------------------------------


class Method(NamedTuple):
    """How factors are found.

    Attributes
    ----------
    fit : callable
        Takes a draw, a seed and whether components are ≥ 0.
    tuned : bool
        Whether it looks at the truth.
    flips : bool
        Whether components are compared without their signs.
    peer : bool
        Whether the default is to be as good.
    """

    fit: Callable[[Draw, int, bool], Factors | None]
    tuned: bool = False
    flips: bool = False
    peer: bool = True


def untuned(fit: Callable[..., Factors | None], **options: Any) -> Method:
    """A method that sees X and the number of components, and nothing else."""

    def fit_draw(draw: Draw, seed: int, positive: bool) -> Factors | None:
        return fit(draw.X, len(draw.truth.components), seed, positive)

    return Method(fit_draw, **options)


def best_dictionary(draw: Draw, seed: int, positive: bool) -> Factors | None:
    """Dictionary learning with the alpha that comes nearest to the truth."""
    if np.isnan(draw.X).any():
        return None
    return max(
        dictionaries(draw, seed, positive),
        key=lambda found: score(found.with_features_over(draw.units), draw.truth).cosine,
    )


def dictionaries(draw: Draw, seed: int, positive: bool) -> Iterator[Factors]:
    """One for each alpha, and for features as they are and, if they differ, in own units."""
    for units in feature_units(draw.X):
        noise = root_mean_square(draw.noise / units)
        for alpha in ALPHAS:
            K = len(draw.truth.components)
            found = dictionary(draw.X / units, K, seed, positive, alpha * noise)
            yield found.with_features_over(1 / units)


def feature_units(X: NDArray) -> list[NDArray]:
    """One for all features, and their root mean squares if these differ much."""
    sizes = np.sqrt(np.mean(X**2, axis=0))
    same = np.ones(len(sizes))
    return [same, sizes] if sizes.max() > SMALL_RANGE * sizes.min() else [same]


DEFAULT = "seminmf"
PROTOTYPE = "prototype"
METHODS: dict[str, Method] = {
    DEFAULT: untuned(skellam, peer=False),
    "paper": untuned(paper),
    "euclidean": untuned(euclidean),
    "dictionary": Method(best_dictionary, tuned=True),
    "dictionary-1": untuned(dictionary_alpha_1),
    "ica": untuned(ica, flips=True),
    "nmf": untuned(nmf),
    "pca": untuned(pca, flips=True),
}


def methods(names: list[str] | None, prototype_path: str | None) -> dict[str, Method]:
    """Those with the names, or all; the prototype is there if its path is given."""
    known = dict(METHODS)
    if prototype_path:
        known[PROTOTYPE] = untuned(partial(prototype, path=prototype_path), peer=False)
    return known if names is None else {name: known[name] for name in names}
