"""select_n_components: the right number, the same for any n_jobs, cells that are really hidden."""

import matplotlib
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import digamma, logsumexp
from scipy.stats import gamma, norm, skellam

from seminmf import BayesianSkellamSNMF, SkellamSNMF, select_n_components
from seminmf._prior_learning.hyperparameters import gamma_shape
from seminmf._selection import (
    comparison,
    density,
    evidence,
    fitting,
    heldout,
    importance,
    relevance,
)
from seminmf._selection.comparison import Comparison

matplotlib.use("Agg")

K = 2
CRITERIA = ["elbo", "heldout", "relevance"]
COLUMNS = ["n_components", "score", "standard_error", "n_runs", "behind", "behind_error"]


def draw(likelihood, n_samples=50, n_features=12, noise=0.3, seed=0, n_components=K):
    """Sparse components; Skellam noise, or normal noise of the same size everywhere."""
    rng = np.random.default_rng(seed)
    atoms = rng.dirichlet(np.full(2 * n_features, 0.5), n_components)
    atoms = atoms.reshape(n_components, 2, n_features)
    activations = rng.gamma(0.5, 200.0, (n_samples, n_components))
    rates = np.einsum("jk,ksi->sji", activations, atoms)
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


@pytest.fixture(scope="module")
def relevant():
    return select(criterion="relevance", candidates=[5])


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("likelihood", ["real", "integer"])
def test_the_right_number(likelihood, criterion):
    X = draw(likelihood)
    X[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
    assert select(likelihood, X, criterion=criterion).best == K


def test_no_component_undoes_what_the_others_have_too_much():
    """At constant noise an eighth component, minus the sum of the seven, would be chosen."""
    X = draw("real", 200, 50, noise=0.6, seed=1, n_components=7)
    assert select("real", X, (6, 7, 8), criterion="heldout").best == 7


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
    scores = np.array([[-50.0, -51.0], [-1.0, -4.0], [-30.0, -31.0]])
    runs = np.stack([scores, scores - 5], axis=2)
    result = evidence.conclude([1, 2, 3], runs)
    assert (result.best, result.clear) == (2, True)
    assert result.sentence == "2 is the clear winner, the next is 29 nats of evidence behind."


def test_a_lead_within_its_error_is_not_clear():
    """Starts that differ by more than the lead: another one might have turned it."""
    scores = np.array([[-1480.0, -6500.0], [0.0, -10.0]])
    result = evidence.conclude([1, 2], np.stack([scores, scores], axis=2))
    assert (result.best, result.clear) == (2, False)
    error = result.table["behind_error"]
    assert error[0] == pytest.approx(np.hypot(5020, 10))
    # Two starts that agree have found it; a third that did not changes nothing.
    agreeing = np.column_stack([scores[:, 0], scores])
    assert evidence.conclude([1, 2], np.stack([agreeing, agreeing], axis=2)).clear
    single = evidence.conclude([1, 2], np.stack([scores[:, :1]] * 2, axis=2))
    assert not single.clear  # one start each says nothing of others


def test_folds_that_disagree_are_not_clear():
    """Many cells of few folds: the folds are what was observed."""
    rng = np.random.default_rng(0)
    leads = np.repeat([2.0, -0.5, 0.2, 0.1, -0.1], 400)
    scores = np.array([np.zeros(2000), leads + 0.1 * rng.normal(size=2000)])
    assert not heldout.conclude([1, 2], scores, [400] * 5).clear
    scores[1] += 3.0
    assert heldout.conclude([1, 2], scores, [400] * 5).clear


def test_clear_winner_of_hidden_cells():
    scores = np.random.default_rng(0).normal([[-1.0], [0.0], [-0.5]], 0.1, (3, 200))
    result = heldout.conclude([1, 2, 3], scores, [100, 100])
    assert (result.best, result.clear) == (2, True)


def test_flat_curve_of_hidden_cells_has_no_clear_winner():
    scores = np.random.default_rng(0).normal(size=(3, 200))
    result = heldout.conclude([1, 2, 3], scores, [100, 100])
    assert not result.clear
    assert result.sentence.startswith(f"No clear winner: {result.best} is chosen, but ")


def test_smallest_within_one_error_is_chosen():
    noise = np.random.default_rng(0).normal(size=1000)
    scores = np.array([-1.0 + noise, 0.02 * noise[::-1], 1e-5 + 0 * noise])
    scores[1] -= scores[1].mean()
    assert heldout.conclude([1, 2, 3], scores, [1000]).best == 2


def test_flat_evidence_has_no_clear_winner():
    scores = np.array([[-50.0, -50.0], [-2.0, -2.0], [-1.0, -1.0]])
    runs = np.stack([scores, scores - 5], axis=2)
    result = evidence.conclude([1, 2, 3], runs)
    assert (result.best, result.clear) == (3, False)
    assert result.sentence == (
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
    hidden = heldout.hide(observed, share, rng)
    assert not np.any(hidden & ~observed)
    left = observed & ~hidden
    for axis in (0, 1):
        assert_array_equal(left.any(axis=axis), observed.any(axis=axis))
    if share < 0.6:
        assert hidden.sum() == round(share * observed.sum())


def test_fits_do_not_see_hidden_cells(monkeypatch):
    """Whatever stands in the hidden cells, the fit is the same."""
    fitted = []
    fit = heldout.fit
    monkeypatch.setattr(heldout, "fit", lambda *args: fitted.append(fit(*args)) or fitted[-1])
    X = draw("integer")
    hidden = heldout.hide(~np.isnan(X), 0.2, np.random.RandomState(0))
    for values in (X, np.where(hidden, 7.0, X)):
        counts = Comparison(
            X=values,
            scale=np.ones(12),
            noise=0.0,
            estimator=BayesianSkellamSNMF(),
            learn_prior=False,
        )
        heldout.predict_hidden(counts, K, 0, hidden)
    assert_array_equal(fitted[0].activations_, fitted[1].activations_)


def test_evidence_lies_above_the_bound():
    found = select(candidates=[1, 2]).table
    assert (found["score"] > found["lower_bound"]).all()


def test_density_of_cells():
    x = np.array([-3.0, 0.0, 5.0, np.nan])
    expected = [*skellam.logpmf(x[:3], 2.0, 1.5), 0.0]
    assert_allclose(density.log_density(x, np.full(4, 2.0), np.full(4, 1.5)), expected)


def test_evidence_of_one_component_is_its_integral():
    X = draw("integer", n_samples=6, n_components=1)
    prior = {"activation_shape_prior": 1.0, "activation_rate_prior": 0.01, "atom_shape_prior": 1.0}
    model = BayesianSkellamSNMF(1, likelihood="integer", random_state=0, **prior).fit(X)
    sensitivities = density.sensitivity(X, model.activations_, model.atoms_)
    logs = np.linspace(-12, 9, 20001)
    rates = np.exp(logs)[:, None] * model.atoms_
    likelihood = np.stack(
        [density.log_density(np.broadcast_to(x, rates[0].shape), *rates).sum(1) for x in X]
    )
    prior = gamma.logpdf(np.exp(logs), 1.0, scale=100.0) + logs
    expected = np.sum(logsumexp(likelihood + prior, axis=1) + np.log(logs[1] - logs[0]))
    draws = importance.Draws.of(X, model, sensitivities, 1, np.random.RandomState(0), 4000)
    assert_allclose(draws.evidence(), expected, atol=0.1)


def test_prior_with_the_most_evidence():
    """EM stops where neither another shape nor another rate has more evidence."""
    rng = np.random.RandomState(0)
    sums = rng.gamma(0.5, 30.0, size=200) * np.exp(0.3 * rng.normal(size=(50, 200)))

    def draws_of(shape, rate):
        priors = gamma.logpdf(sums, shape, scale=1 / rate) + np.log(sums)
        return importance.Draws(
            weights=np.zeros(sums.shape),
            priors=priors,
            sums=sums,
            log_sums=np.log(sums),
            n_components=1,
        )

    shapes, means = np.linspace(0.3, 0.8, 26), np.linspace(10, 20, 21)
    most = max(draws_of(a, a / mean).evidence() for a in shapes for mean in means)
    assert draws_of(1.0, 0.01).with_best_prior().evidence() == pytest.approx(most, abs=0.1)


def score_cells(x, rate0, rate1, scale=1.0):
    real = Comparison(
        X=x, scale=scale * np.ones(1), noise=1.0, estimator=BayesianSkellamSNMF(), learn_prior=True
    )
    cells = np.stack(np.broadcast_arrays(x, rate0, rate1, np.log(scale)))
    return heldout.log_likelihoods(cells, real)


@pytest.mark.parametrize("excess", [0.5, 1.0, 3.0])
def test_score_of_real_cells_finds_their_noise(excess):
    """Rates that promise less noise than there is, or more, cost nothing."""
    x = 20 + np.sqrt(100 * excess) * np.random.default_rng(0).normal(size=20000)
    scores = score_cells(x, 60.0, 40.0)
    expected = norm.logpdf(x, 20, np.sqrt(100 * excess)).mean()
    assert scores.mean() == pytest.approx(expected, abs=0.03)


def test_score_of_real_cells_prefers_the_true_mean():
    x = 20 + 10 * np.random.default_rng(0).normal(size=20000)
    true, larger, off = (score_cells(x, *r).mean() for r in ((60, 40), (110, 90), (64, 36)))
    assert true > off + 0.1
    # More rate on both sides is noise only.
    assert true == pytest.approx(larger, abs=0.03)


def test_score_is_that_of_x_in_its_own_unit():
    x = np.random.default_rng(0).normal(size=50)
    first = score_cells(x, 3.0, 3.0)
    assert_allclose(score_cells(x, 3.0, 3.0, scale=8.0), first - np.log(8))


def test_relevance_table(relevant):
    table = relevant.table
    assert list(table.columns) == ["component", "share", "activation", "rate", "counts", "on"]
    assert_array_equal(table["component"], [1, 2, 3, 4, 5])
    assert table["share"].is_monotonic_decreasing
    assert table["share"].sum() == pytest.approx(1)
    assert table["on"].sum() == relevant.best == K
    # The prior's mean is the activations': the rate that was learned is 1 / mean.
    assert_allclose(table["rate"] * table["activation"], 1, rtol=0.05)
    assert (table["share"][~table["on"]] < 1e-3).all()


def test_relevance_of_many_components_is_that_of_few(relevant):
    again = select(criterion="relevance", candidates=[3, 8])
    assert again.best == relevant.best
    assert len(again.table) == 8


def test_relevance_is_drawn_as_bars(relevant):
    ax = relevant.plot()
    assert_allclose(sorted(bar.get_height() for bar in ax.patches), sorted(relevant.table["share"]))
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["on: 2", "off: 3"]


def a_fit(*relevances, lower_bound=0.0):
    values = np.array(relevances)
    return relevance.Fit(
        lower_bound=lower_bound, rates=1 / values, means=values, counts=values, relevances=values
    )


@pytest.mark.parametrize(
    ("fits", "best", "clear", "sentence"),
    [
        ([a_fit(50.0, 1e-3)], 1, True, "1 of 2 components are on, the others are clearly off."),
        (
            [a_fit(50.0, 2.0, 1e-3)],
            2,
            False,
            "Not clear: 2 of 3 components are on, but 1 is near the threshold.",
        ),
        (
            [a_fit(50.0, 1e-3, 1e-3), a_fit(50.0, 40.0, 1e-3, lower_bound=1.0)],
            2,
            False,
            "Not clear: 2 of 3 components are on, but other starts left 1 on.",
        ),
        (
            [a_fit(50.0, 40.0)],
            2,
            False,
            "Not clear: 2 of 2 components are on, but none is off, try more.",
        ),
    ],
)
def test_verdict_of_relevance(fits, best, clear, sentence):
    verdict = relevance.conclude(fits)
    assert verdict[:3] == (best, clear, sentence)


def test_gamma_shape():
    for shape in (0.02, 0.7, 60.0):
        gap = np.log(shape) - digamma(shape)
        assert gamma_shape(gap) == pytest.approx(shape, rel=1e-6)


def test_the_users_prior_is_kept():
    estimator = BayesianSkellamSNMF(likelihood="integer", activation_rate_prior=0.3)
    kept = Comparison.of(estimator, draw("integer"), False, 3)
    model = fitting.fit(kept, kept.X, 2, 0)
    assert model.activation_rate_prior.item() == 0.3


def test_the_users_scale_is_kept():
    estimator = BayesianSkellamSNMF(dispersion=2.5)
    assert_array_equal(Comparison.of(estimator, draw("real"), True, 3).scale, 2.5)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_noise_component_is_frozen():
    real = Comparison.of(BayesianSkellamSNMF(), draw("real"), True, 3)
    model = fitting.fit(real, real.X, 2, 0)
    assert model.atoms_.shape[1] == 3
    assert_allclose(model.components_[2], 0, atol=1e-12)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_degenerate_data(criterion):
    for X in (np.zeros((6, 4)), np.outer(np.arange(6.0), [1.0, -1, 2, 0])):
        table = select("real", X, (1, 2), criterion=criterion).table
        columns = ["share", "rate"] if criterion == "relevance" else ["score"]
        assert np.isfinite(table[columns].to_numpy()).all()


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
        ({"criterion": "bic"}, "criterion must be one of 'elbo', 'heldout', 'relevance'; found"),
        ({"share": 0}, "share must be between 0 and 1; found 0"),
        ({"share": 1.0}, "share must be between 0 and 1; found 1.0"),
        ({"n_folds": 0}, "n_folds must be an integer of at least 1; found 0"),
        ({"n_init": 0}, "n_init must be an integer of at least 1; found 0"),
        ({"n_jobs": 0}, "n_jobs must be None or an integer other than 0; found 0"),
        ({"learn_prior": "yes"}, "learn_prior must be True or False; found 'yes'"),
        (
            {"criterion": "relevance", "learn_prior": False},
            "learn_prior must be True for criterion 'relevance'",
        ),
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
    monkeypatch.setattr(comparison, "_noise_and_signal", lambda *_: pytest.fail("work has started"))
    with pytest.raises(ValueError, match=sentence):
        select(**{"candidates": (1, 3), **options})
