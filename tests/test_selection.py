"""select_n_components: the right number, the same for any n_jobs, cells that are really hidden."""

import matplotlib
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import digamma
from scipy.stats import skellam

from seminmf import BayesianSkellamSNMF, SkellamSNMF, select_n_components, selection
from seminmf._inference.hyperparameters import gamma_shape

matplotlib.use("Agg")

K = 2
COLUMNS = ["n_components", "score", "standard_error", "n_runs", "behind", "behind_error"]


def draw(likelihood, n_samples=50, n_features=12, noise=0.3, seed=0):
    """K sparse components; Skellam noise, or normal noise of the same size everywhere."""
    rng = np.random.default_rng(seed)
    atoms = rng.dirichlet(np.full(2 * n_features, 0.5), K).reshape(K, 2, n_features)
    rates = np.einsum("jk,ksi->sji", rng.gamma(0.5, 200.0, (n_samples, K)), atoms)
    if likelihood == "integer":
        return np.subtract(*rng.poisson(rates)).astype(float)
    mean = rates[0] - rates[1]
    return mean + noise * mean.std() * rng.normal(size=mean.shape)


def select(likelihood="integer", X=None, candidates=(1, 2, 3), **options):
    X = draw(likelihood) if X is None else X
    options = {"n_init": 1, "n_folds": 2, "n_jobs": 1, "random_state": 0, **options}
    estimator = BayesianSkellamSNMF(likelihood=likelihood)
    return select_n_components(X, candidates, **{"estimator": estimator, **options})


@pytest.fixture(scope="module", params=["elbo", "heldout"])
def found(request):
    return select(criterion=request.param)


@pytest.mark.parametrize("criterion", ["elbo", "heldout"])
@pytest.mark.parametrize("likelihood", ["real", "integer"])
def test_the_right_number(likelihood, criterion):
    X = draw(likelihood)
    X[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
    assert select(likelihood, X, criterion=criterion).best == K


def test_the_unit_of_real_data_does_not_matter():
    X = draw("real")
    first, second = (select("real", c * X, (1, 2)) for c in (1.0, 1024.0))
    assert_allclose(first.table["behind"], second.table["behind"], rtol=1e-4, atol=1e-4)


def test_number_of_jobs_does_not_matter(found):
    again = select(criterion=found.criterion, n_jobs=2)
    pd.testing.assert_frame_equal(found.table, again.table, check_exact=True)


def test_random_state_matters():
    options = {"criterion": "heldout", "candidates": [1], "n_folds": 1}
    tables = [select(random_state=seed, **options).table for seed in (0, 1)]
    assert not tables[0].equals(tables[1])


def test_table(found):
    extra = ["lower_bound"] if found.criterion == "elbo" else []
    assert list(found.table.columns) == COLUMNS + extra
    assert_array_equal(found.table["n_components"], [1, 2, 3])
    assert (found.table["n_runs"] == (1 if found.criterion == "elbo" else 2)).all()
    assert found.table["behind"].min() == 0
    assert_allclose(found.table["score"].max() - found.table["score"], found.table["behind"])


def test_duplicates_are_merged_and_sorted():
    table = select(candidates=np.array([2, 1, 2])).table
    assert_array_equal(table["n_components"], [1, 2])


def test_representation_and_plot(found):
    assert repr(found).startswith(f"Selection by '{found.criterion}': {found.verdict}")
    ax = found.plot()
    assert ax.get_xlabel() == "number of components" and "nats" in ax.get_ylabel()
    assert ax.get_legend().get_texts()[0].get_text() == "chosen: 2"
    assert found.plot(ax) is ax


def test_result_is_frozen(found):
    with pytest.raises(AttributeError):
        found.best = 3


def test_clear_winner_of_evidence():
    runs = np.array([[[-50.0, -60.0]], [[-1.0, -9.0]], [[-30.0, -9.0]]])
    result = selection._conclude_elbo([1, 2, 3], runs)
    assert (result.best, result.clear) == (2, True)
    assert result.verdict == "2 is the clear winner, the next is 29 nats of evidence behind."


def test_clear_winner_of_hidden_cells():
    scores = np.random.default_rng(0).normal([[-1.0], [0.0], [-0.5]], 0.1, (3, 200))
    result = selection._conclude_heldout([1, 2, 3], scores, 2)
    assert (result.best, result.clear) == (2, True)


def test_flat_curve_of_hidden_cells_has_no_clear_winner():
    scores = np.random.default_rng(0).normal(size=(3, 200))
    result = selection._conclude_heldout([1, 2, 3], scores, 2)
    assert not result.clear
    assert result.verdict.startswith(f"No clear winner: {result.best} is chosen, but ")


def test_smallest_within_one_error_is_chosen():
    noise = np.random.default_rng(0).normal(size=1000)
    scores = np.array([-1.0 + noise, 0.02 * noise[::-1], 1e-5 + 0 * noise])
    scores[1] -= scores[1].mean()
    assert selection._conclude_heldout([1, 2, 3], scores, 1).best == 2


def test_flat_evidence_has_no_clear_winner():
    runs = np.array([[[-50.0, -60.0]], [[-2.0, -9.0]], [[-1.0, -9.0]]])
    result = selection._conclude_elbo([1, 2, 3], runs)
    assert (result.best, result.clear) == (3, False)
    assert result.verdict == (
        "No clear winner: 3 is chosen, but 2 cannot be ruled out. "
        "It is the largest candidate: try larger ones."
    )


def test_single_candidate_is_no_winner():
    result = select(candidates=[2])
    assert (result.best, result.clear) == (2, False)
    assert "only candidate" in result.verdict


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_hidden_cells(share):
    rng = np.random.RandomState(0)
    observed = rng.uniform(size=(30, 8)) < 0.8
    observed[:, 0] = np.arange(30) == 3
    observed[5] = False
    hidden = selection._hide(observed, share, rng)
    assert not np.any(hidden & ~observed)
    left = observed & ~hidden
    for axis in (0, 1):
        assert_array_equal(left.any(axis=axis), observed.any(axis=axis))
    if share < 0.6:
        assert hidden.sum() == round(share * observed.sum())


def test_fits_do_not_see_hidden_cells(monkeypatch):
    """Whatever stands in the hidden cells, the fit is the same."""
    fitted = []
    fit = selection._fit
    monkeypatch.setattr(selection, "_fit", lambda *args: fitted.append(fit(*args)) or fitted[-1])
    X = draw("integer")
    hidden = selection._hide(~np.isnan(X), 0.2, np.random.RandomState(0))
    for values in (X, np.where(hidden, 7.0, X)):
        problem = selection._Problem(values, 1.0, BayesianSkellamSNMF(), False, False)
        selection._scores_of_fold(problem, K, 0, hidden)
    assert_array_equal(fitted[0].activations_, fitted[1].activations_)


def test_evidence_lies_above_the_bound():
    found = select(candidates=[1, 2]).table
    assert (found["score"] > found["lower_bound"]).all()


def test_density_of_cells():
    x = np.array([-3.0, 0.0, 5.0, np.nan])
    expected = [*skellam.logpmf(x[:3], 2.0, 1.5), 0.0]
    assert_allclose(selection._log_density(x, np.full(4, 2.0), np.full(4, 1.5)), expected)


def test_gamma_shape():
    for shape in (0.02, 0.7, 60.0):
        gap = np.log(shape) - digamma(shape)
        assert gamma_shape(gap) == pytest.approx(shape, rel=1e-6)


def test_the_users_prior_is_kept():
    estimator = BayesianSkellamSNMF(likelihood="integer", activation_rate_prior=0.3)
    problem = selection._Problem.of(estimator, draw("integer"), False, 3)
    model = selection._fit(problem, problem.X, 2, 0)
    assert model.activation_rate_prior.item() == 0.3


def test_the_users_scale_is_kept():
    estimator = BayesianSkellamSNMF(scale=2.5)
    assert selection._Problem.of(estimator, draw("real"), True, 3).scale == 2.5


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_noise_component_is_frozen():
    problem = selection._Problem.of(BayesianSkellamSNMF(), draw("real"), True, 3)
    model = selection._fit(problem, problem.X, 2, 0)
    assert model.atoms_.shape[1] == 3
    assert_allclose(model.components_[2], 0, atol=1e-12)


def test_degenerate_data():
    for X in (np.zeros((6, 4)), np.outer(np.arange(6.0), [1.0, -1, 2, 0])):
        table = select("real", X, (1, 2)).table
        assert np.isfinite(table["score"]).all()


def test_progress_bar(capsys):
    select(candidates=[1, 2], verbose=1)
    assert "fits: 100%" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"candidates": []}, "candidates must hold at least one number of components; found none"),
        ({"candidates": 3}, "candidates must be a list of integers; found 3"),
        ({"candidates": [0, 1]}, "each of candidates must be an integer of at least 1; found 0"),
        ({"candidates": [1.5]}, "each of candidates must be an integer of at least 1; found 1.5"),
        ({"criterion": "bic"}, "criterion must be one of 'elbo', 'heldout'; found 'bic'"),
        ({"share": 0}, "share must be between 0 and 1; found 0"),
        ({"share": 1.0}, "share must be between 0 and 1; found 1.0"),
        ({"n_folds": 0}, "n_folds must be an integer of at least 1; found 0"),
        ({"n_init": 0}, "n_init must be an integer of at least 1; found 0"),
        ({"n_jobs": 0}, "n_jobs must be None or an integer other than 0; found 0"),
        ({"learn_prior": "yes"}, "learn_prior must be True or False; found 'yes'"),
        ({"estimator": SkellamSNMF()}, "estimator must be a BayesianSkellamSNMF"),
        ({"X": np.full((3, 2), np.inf)}, "X must be finite"),
        ({"X": np.full((3, 2), 0.5)}, "X must be of integers"),
        (
            {"estimator": BayesianSkellamSNMF(activation_rate_prior=[1.0, 2.0])},
            "activation_rate_prior must be a number or broadcast",
        ),
    ],
)
def test_errors_come_before_any_work(options, sentence, monkeypatch):
    monkeypatch.setattr(selection, "_find_scale", lambda *_: pytest.fail("work has started"))
    with pytest.raises(ValueError, match=sentence):
        select(**{"candidates": (1, 3), **options})
