"""The estimators as scikit-learn wants them, alone and in its tools."""

import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from seminmf import BayesianSkellamSNMF, EuclideanSNMF, SkellamSNMF
from seminmf._estimators.runs import matched_cosines

ESTIMATORS = [SkellamSNMF, BayesianSkellamSNMF, EuclideanSNMF]


DENSE = "check_sample_weight_equivalence_on_dense_data"
SPARSE = "check_sample_weight_equivalence_on_sparse_data"


def expected_failures(estimator):
    """Checks that cannot apply."""
    if isinstance(estimator, EuclideanSNMF):
        return {DENSE: "random starts are drawn sample by sample, those of weight 0 as well"}
    if isinstance(estimator, (SkellamSNMF, BayesianSkellamSNMF)):
        reason = "the price is chosen by cells that are held back at random, sample by sample"
        return {DENSE: reason, SPARSE: reason}
    return {}


def expected_failures_of_long_fits(estimator):
    """Extrapolation makes rounding grow beyond the 1e-7 that the checks allow."""
    reason = "extrapolation makes rounding grow; the tests of a repeated sample say what holds"
    failures = [] if isinstance(estimator, EuclideanSNMF) else [DENSE, SPARSE]
    return expected_failures(estimator) | dict.fromkeys(failures, reason)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [estimator(max_iter=10) for estimator in ESTIMATORS], expected_failed_checks=expected_failures
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [estimator(max_iter=300) for estimator in ESTIMATORS],
    expected_failed_checks=expected_failures_of_long_fits,
)
def test_scikit_learn_checks_of_long_fits(estimator, check):
    check(estimator)


def weighted_and_repeated(estimator, kind=np.asarray):
    """Fits to samples of weights 0 to 4 and to the samples as often, in another order."""
    random = np.random.default_rng(0)
    X, weights = random.uniform(size=(15, 30)), random.integers(0, 5, 15)
    order = random.permutation(15)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        weighted = clone(estimator).fit(kind(X[order]), sample_weight=weights[order])
        repeated = clone(estimator).fit(kind(X.repeat(weights, axis=0)))
    return weighted, repeated, kind(X)


@pytest.mark.parametrize(
    ("estimator", "kind"),
    [
        (SkellamSNMF(dispersion=0.0, max_iter=300, random_state=0), np.asarray),
        (SkellamSNMF(dispersion=0.0, max_iter=300, acceleration=None, random_state=0), csr_array),
        (
            BayesianSkellamSNMF(dispersion=0.0, max_iter=300, acceleration=None, random_state=0),
            np.asarray,
        ),
    ],
    ids=["newton", "em of sparse data", "vbem"],
)
def test_a_weight_is_a_repeated_sample(estimator, kind):
    """At every iteration, and so after many: each sample moves by its own cells alone."""
    weighted, repeated, X = weighted_and_repeated(estimator, kind)
    assert weighted.n_iter_ == repeated.n_iter_ > 50
    # Several hundred iterations let rounding grow.
    tolerance = {"rtol": 1e-6, "atol": 1e-9}
    np.testing.assert_allclose(weighted.transform(X), repeated.transform(X), **tolerance)
    np.testing.assert_allclose(weighted.components_, repeated.components_, **tolerance)


@pytest.mark.parametrize("estimator", [SkellamSNMF, BayesianSkellamSNMF])
def test_a_weight_is_a_repeated_sample_where_noise_is_sought(estimator):
    """But for the choice of the price, for which cells are held back at random."""
    X = data()
    weights = np.tile([1.0, 2.0], 20)
    weighted = estimator(3, random_state=0).fit(X, sample_weight=weights)
    repeated = estimator(3, random_state=0).fit(np.repeat(X, weights.astype(int), axis=0))
    np.testing.assert_allclose(weighted.noise_, repeated.noise_, rtol=0.1)
    cosines = matched_cosines(weighted.components_, repeated.components_)
    assert cosines.min() > 0.99


def test_a_weight_leads_where_a_repeated_sample_does_with_extrapolation():
    """Rounding grows on the way, and the ways part; their ends are the same."""
    estimator = BayesianSkellamSNMF(dispersion=0.0, max_iter=3000, tol=1e-7, random_state=0)
    weighted, repeated, _ = weighted_and_repeated(estimator)
    assert weighted.converged_ and repeated.converged_
    assert weighted.lower_bound_ == pytest.approx(repeated.lower_bound_, rel=1e-6)
    largest = np.abs(repeated.components_).max()
    np.testing.assert_allclose(weighted.components_, repeated.components_, atol=1e-3 * largest)


def data(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.gamma(0.5, 20.0, (40, 3)) @ rng.normal(size=(3, 7)) + rng.normal(size=(40, 7))
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_pipeline(estimator):
    X = data()
    snmf = estimator(3, random_state=0, tol=1e-3)
    pipeline = make_pipeline(
        FunctionTransformer(lambda X: 0.5 * X), snmf, KMeans(3, n_init=1, random_state=0)
    )
    labels = pipeline.fit(X).predict(X)
    activations = estimator(3, random_state=0, tol=1e-3).fit(0.5 * X).transform(0.5 * X)
    np.testing.assert_allclose(pipeline[:-1].transform(X), activations, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(
        labels, KMeans(3, n_init=1, random_state=0).fit(activations).predict(activations)
    )


@pytest.mark.parametrize("estimator", [SkellamSNMF, BayesianSkellamSNMF])
def test_grid_search_over_the_rate(estimator):
    """The score is one that can be compared, so that the largest rate does not win by default."""
    X = data()
    rates = [1e-3, 1e-1, 1e2]
    search = GridSearchCV(
        estimator(3, dispersion=0.0, random_state=0),
        {"activation_rate_prior": rates},
        cv=3,
        error_score="raise",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        search.fit(X)
    scores = search.cv_results_["mean_test_score"]
    assert np.isfinite(scores).all() and len(set(scores)) == len(rates)
    assert search.best_params_["activation_rate_prior"] < 1e2
    assert search.best_estimator_.activations_.shape == (40, 3)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_tags_say_what_is_accepted(estimator):
    tags = estimator().__sklearn_tags__()
    assert tags.input_tags.allow_nan
    assert tags.input_tags.sparse == (estimator is not EuclideanSNMF)
    assert not tags.input_tags.positive_only
    assert tags.transformer_tags.preserves_dtype == ["float64", "float32"]
