"""The estimators as scikit-learn wants them, alone and in its tools."""

import warnings

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from seminmf import BayesianSkellamSNMF, EuclideanSNMF, SkellamSNMF

ESTIMATORS = [SkellamSNMF, BayesianSkellamSNMF, EuclideanSNMF]


def expected_failures(estimator):
    """Checks that cannot apply."""
    if not isinstance(estimator, EuclideanSNMF):
        return {}
    check = "check_sample_weight_equivalence_on_dense_data"
    return {check: "random starts are drawn sample by sample, those of weight 0 as well"}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    # Extrapolation makes rounding grow: after some more iterations, a sample of weight 2 and the
    # sample twice may differ by more than the checks allow.
    [estimator(max_iter=10) for estimator in ESTIMATORS],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


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
        estimator(3, random_state=0), {"activation_rate_prior": rates}, cv=3, error_score="raise"
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
