"""PriorLearner: batch and online, what it refuses, and that a stream goes on after a restart."""

import copy

import numpy as np
import pytest
from scipy.special import digamma

from seminmf import BayesianSkellamSNMF, PriorLearner, SkellamSNMF, load, sample_skellam_snmf

SHAPES = np.array([2.0, 30.0])
RATES = SHAPES / 200
ATOMS = np.array([[[8.0, 0.05, 2.0], [0.05, 6.0, 4.0]], [[0.05, 5.0, 0.05], [3.0, 0.05, 0.05]]])


def draw(seed, n_samples=60, likelihood="integer", missing=0.1):
    return sample_skellam_snmf(
        n_samples,
        3,
        2,
        M=1 if likelihood == "integer" else 50,
        activation_shape=SHAPES,
        activation_rate=RATES,
        atom_shape=ATOMS,
        missing=missing,
        random_state=seed,
    )[0]


def estimator(likelihood="integer", **parameters):
    defaults = {"likelihood": likelihood, "max_iter": 40, "tol": 1e-3, "random_state": 0}
    return BayesianSkellamSNMF(2, **(defaults | parameters))


def learned(learner):
    """All that a learner knows, as a list of arrays."""
    state = learner._learned
    *numbers, atoms = state.statistics
    prior = state.prior.parameters.values()
    return [*prior, *numbers, *atoms, *state.potential, state.n_matrices, state.weight]


def assert_same(first, second):
    for one, other in zip(learned(first), learned(second), strict=True):
        np.testing.assert_array_equal(one, other)


pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore:.*reached its bound"
)


@pytest.mark.parametrize("likelihood", ["integer", "real"])
@pytest.mark.parametrize(
    "sharing",
    [
        pytest.param("all", marks=pytest.mark.slow),
        "component",
        "entry",
        pytest.param(None, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("posterior", ["mean-field", "correlated"])
def test_total_bound_of_a_batch_never_falls(likelihood, sharing, posterior):
    collection = [draw(seed, likelihood=likelihood) for seed in range(4)]
    learner = PriorLearner(
        estimator(likelihood, tol=1e-5, max_iter=300),
        activation_shape_sharing=sharing,
        activation_rate_sharing="component",
        atom_sharing=sharing,
        posterior=posterior,
        hyperprior=0,
        max_iter=6,
    ).fit(collection)
    bounds = learner.lower_bounds_
    # The evidence may be as good as it gets after one pass as over a stream.
    assert len(bounds) >= (2 if posterior == "mean-field" else 1)
    assert np.all(np.diff(bounds) >= -learner.tol)
    assert learner.n_matrices_ == 4


def test_what_is_not_shared_is_not_learned():
    learner = PriorLearner(
        estimator(activation_shape_prior=2.5, atom_shape_prior=0.7),
        activation_shape_sharing=None,
        atom_sharing=None,
        max_iter=3,
    ).fit([draw(0), draw(1)])
    assert np.all(learner.estimator_.activation_shape_prior == 2.5)
    assert np.all(learner.estimator_.atom_shape_prior == 0.7)
    assert learner.estimator_.activation_rate_prior.shape == (1, 2)
    assert np.all(learner.estimator_.activation_rate_prior != 1e-3)


def test_the_harmonic_rate_averages_the_start_and_all_matrices():
    learner = PriorLearner(estimator(), learning_rate="harmonic", hyperprior=0)
    deltas = [60 * np.full(2, 1 / 1e-3)]
    gammas = [60 * (digamma(np.ones(2)) - np.log(1e-3))]
    for seed in range(3):
        learner.partial_fit(draw(seed))
        last = learner.last_
        deltas.append(last.activations_.sum(axis=0))
        logs = digamma(last.activation_shape_) - np.log(last.activation_rate_)
        gammas.append(logs.sum(axis=0))
    statistics = learner._learned.statistics
    np.testing.assert_allclose(statistics.delta, np.mean(deltas, axis=0))
    np.testing.assert_allclose(statistics.gamma, np.mean(gammas, axis=0))
    assert learner.n_matrices_ == 3
    np.testing.assert_allclose(learner._learned.weight, 4)


def test_a_fixed_rate_forgets():
    learner = PriorLearner(estimator(), learning_rate=1.0, hyperprior=0, atom_sharing="all")
    learner.partial_fit(draw(0)).partial_fit(draw(1))
    expected = learner.last_.activations_.sum(axis=0)
    np.testing.assert_allclose(learner._learned.statistics.delta, expected)


def test_a_rate_of_one_goes_on_for_long():
    learner = PriorLearner(estimator(), learning_rate=1.0)
    for seed in range(8):
        learner.partial_fit(draw(seed))
    assert learner.n_matrices_ == 8


def test_windows_without_variation_are_learned_from():
    """One sample, equal samples and zeros: after them, smaller activations are expected."""
    learner = PriorLearner(estimator(), learning_rate="annealed")
    for seed in range(6):
        learner.partial_fit(draw(seed, missing=0))
    learner.partial_fit(draw(0)[:1])
    learner.partial_fit(np.tile(draw(1, missing=0)[:1], (20, 1)))
    before = learner.estimator_
    for _ in range(30):
        learner.partial_fit(np.zeros((30, 3)))
    means = [
        each.activation_shape_prior / each.activation_rate_prior
        for each in (before, learner.estimator_)
    ]
    assert np.all(means[1] < 0.2 * means[0])


@pytest.mark.parametrize("posterior", ["mean-field", "correlated"])
def test_small_shapes_of_activations_are_learned(posterior):
    learner = PriorLearner(
        BayesianSkellamSNMF(1, likelihood="integer", max_iter=40, tol=1e-3, random_state=0),
        posterior=posterior,
        learning_rate="annealed",
    )
    for seed in range(8):
        X, _, _ = sample_skellam_snmf(
            400, 4, 1, activation_shape=0.3, activation_rate=0.01, random_state=seed
        )
        learner.partial_fit(X)
    np.testing.assert_allclose(learner.estimator_.activation_shape_prior, 0.3, rtol=0.12)


def test_priors_by_sample_and_many_samples():
    """More samples than are looked at first, each with a prior of its own."""
    rates = np.linspace(0.005, 0.02, 1200)[:, None]
    learner = PriorLearner(
        estimator(activation_rate_prior=rates), activation_rate_sharing=None, max_iter=1
    )
    learner.partial_fit(draw(0, n_samples=1200)).partial_fit(draw(1, n_samples=1200))
    assert learner.estimator_.activation_shape_prior.shape == (1200, 2)
    labels = np.arange(1200)[:, None] // 600 + np.array([[0, 2]])
    by_half = PriorLearner(estimator(), activation_rate_sharing=labels)
    by_half.partial_fit(draw(0, n_samples=1200)).partial_fit(draw(1, n_samples=1200))
    assert len(np.unique(by_half.estimator_.activation_rate_prior)) == 4
    by_sample = PriorLearner(estimator(), activation_rate_sharing="entry")
    by_sample.partial_fit(draw(0, n_samples=2, missing=0))
    with pytest.raises(ValueError, match="same number of samples; found 2 and 1"):
        by_sample.partial_fit(draw(2, n_samples=1, missing=0))


def test_settings_stay_what_they_were():
    learner = PriorLearner(estimator()).partial_fit(draw(0))
    for change in (
        {"posterior": "mean-field"},
        {"activation_shape_sharing": "all"},
        {"activation_rate_sharing": None},
    ):
        other = copy.deepcopy(learner).set_params(**change)
        with pytest.raises(ValueError, match="must stay what they were"):
            other.partial_fit(draw(1))


def test_last_is_one_model():
    """Its prior is that which its posterior was found with, and it can be used."""
    learner = PriorLearner(estimator(), max_iter=3).fit([draw(seed) for seed in range(3)])
    last, learned = learner.last_, learner.estimator_
    np.testing.assert_array_equal(last.activation_shape_prior, learned.activation_shape_prior)
    np.testing.assert_array_equal(last.atom_shape_prior, learned.atom_shape_prior)
    assert last.transform(draw(2)).shape == (60, 2)


@pytest.mark.parametrize("likelihood", ["integer", "real"])
def test_a_stream_goes_on_after_a_restart_as_if_it_had_not_stopped(tmp_path, likelihood):
    labels = np.array([[[0, 1, 2], [2, 1, 0]], [[3, 3, 3], [4, 4, 4]]], dtype=np.int32)
    start = PriorLearner(
        estimator(likelihood, activation_shape_prior=[1.0, 2.0]),
        activation_shape_sharing=[0, 1],
        atom_sharing=labels,
        learning_rate="harmonic",
    )
    start.partial_fit(draw(0, likelihood=likelihood)).partial_fit(draw(1, likelihood=likelihood))
    start.save(tmp_path / "learner.safetensors")
    again = load(tmp_path / "learner.safetensors")
    assert_same(start, again)
    for seed in (2, 3):
        for learner in (start, again):
            learner.partial_fit(draw(seed, likelihood=likelihood))
    assert_same(start, again)
    np.testing.assert_array_equal(start.last_.atoms_, again.last_.atoms_)
    assert again.estimator_.get_params().keys() == start.estimator_.get_params().keys()


def test_frames_keep_their_names(tmp_path):
    import pandas as pd

    frame = pd.DataFrame(draw(0), columns=["a", "b", "c"])
    learner = PriorLearner(estimator()).partial_fit(frame)
    learner.save(tmp_path / "learner.safetensors")
    again = load(tmp_path / "learner.safetensors")
    assert list(again.feature_names_in_) == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names"):
        again.partial_fit(frame.rename(columns={"a": "z"}))
    with pytest.raises(ValueError, match="feature names"):
        PriorLearner(estimator()).fit([frame, frame[["c", "a", "b"]]])


def test_components_keep_their_order():
    """The order of the first matrix is kept, whatever order a fit finds."""
    learner = PriorLearner(estimator(max_iter=300, tol=1e-4), learning_rate=0.3)
    for seed in range(8):
        learner.partial_fit(draw(seed, n_samples=300, missing=0))
    heavy = np.argmax(learner.estimator_.activation_shape_prior[0])
    for seed in range(8, 14):
        X, atoms, _ = sample_skellam_snmf(
            300,
            3,
            2,
            activation_shape=SHAPES,
            activation_rate=RATES,
            atom_shape=ATOMS,
            random_state=seed,
        )
        learner.partial_fit(X)
        truth = atoms[0, 1] - atoms[1, 1]
        cosines = learner.last_.components_ @ truth
        assert np.argmax(cosines) == heavy


def test_matrices_may_differ_in_length_where_sharing_allows():
    lengths = (40, 60)
    collection = [draw(seed, n_samples) for seed, n_samples in enumerate(lengths)]
    learner = PriorLearner(estimator(), max_iter=2).fit(collection)
    assert learner.estimator_.activation_shape_prior.shape == (1, 2)
    learner.partial_fit(draw(5, 30))
    by_sample = PriorLearner(estimator(), activation_rate_sharing="entry", max_iter=2)
    with pytest.raises(ValueError, match="same number of samples; found 40 and 60"):
        by_sample.fit(collection)
    by_sample.partial_fit(collection[0])
    with pytest.raises(ValueError, match="same number of samples; found 40 and 60"):
        by_sample.partial_fit(collection[1])


def test_a_single_matrix_and_a_label_for_each_entry():
    with pytest.raises(ValueError, match="share more coarsely"):
        PriorLearner(estimator(), hyperprior=0).fit([draw(0)])
    with pytest.warns(UserWarning, match="hyperprior alone holds them"):
        learner = PriorLearner(estimator(), max_iter=30).fit([draw(0)])
    assert learner.estimator_.atom_shape_prior.max() < 1e4
    # Coarse sharing needs no help.
    learner = PriorLearner(estimator(), hyperprior=0, atom_sharing="all", max_iter=30)
    assert learner.fit([draw(0)]).estimator_.atom_shape_prior.max() < 1e3


def test_bad_input_gets_a_sentence():
    X = draw(0)
    for expected, make in (
        ("at least one matrix; found none", lambda: PriorLearner(estimator()).fit([])),
        (
            "same number of features; found 3 in the first and 2 in number 2",
            lambda: PriorLearner(estimator()).fit([X, X[:, :2]]),
        ),
        (
            r"learning_rate must be 'harmonic', 'annealed' or a number in \(0, 1\]; found 0",
            lambda: PriorLearner(estimator(), learning_rate=0).partial_fit(X),
        ),
        (
            r"learning_rate .* found 1.5",
            lambda: PriorLearner(estimator(), learning_rate=1.5).fit([X]),
        ),
        (
            r"learning_rate .* found 'fast'",
            lambda: PriorLearner(estimator(), learning_rate="fast").fit([X]),
        ),
        (
            r"atom_sharing has shape \(3,\), but its parameter has shape \(2, 2, 3\)",
            lambda: PriorLearner(estimator(), atom_sharing=[0, 1, 2]).partial_fit(X),
        ),
        (
            r"activation_shape_sharing has shape \(1, 3\), but its parameter has shape \(1, 2\)",
            lambda: PriorLearner(estimator(), activation_shape_sharing=[0, 1, 2]).partial_fit(X),
        ),
        (
            "activation_rate_sharing must be 'all', 'component', 'entry'",
            lambda: PriorLearner(estimator(), activation_rate_sharing="none").partial_fit(X),
        ),
        (
            "activation_rate_prior must be finite and above 0; found 0",
            lambda: PriorLearner(estimator(activation_rate_prior=0.0)).partial_fit(X),
        ),
        (
            "hyperprior must be a finite number of at least 0; found -1",
            lambda: PriorLearner(estimator(), hyperprior=-1).partial_fit(X),
        ),
        (
            "estimator must be a BayesianSkellamSNMF",
            lambda: PriorLearner(SkellamSNMF(2)).partial_fit(X),
        ),
    ):
        with pytest.raises(ValueError, match=expected):
            make()


@pytest.mark.parametrize(
    "bad",
    [
        np.full((5, 3), np.inf),
        np.full((5, 3), np.nan),
        np.full((5, 3), 0.5),
        np.ones((5, 2)),
        "text",
        np.ones((5, 3), dtype=complex),
    ],
    ids=["infinite", "gaps only", "no integers", "other width", "text", "complex"],
)
def test_a_refused_matrix_changes_nothing(bad):
    learner = PriorLearner(estimator()).partial_fit(draw(0))
    before = copy.deepcopy(learner)
    last = learner.last_
    with pytest.raises((ValueError, TypeError)):
        learner.partial_fit(bad)
    assert_same(before, learner)
    assert learner.last_ is last
    np.testing.assert_array_equal(
        before.estimator_.atom_shape_prior, learner.estimator_.atom_shape_prior
    )


def test_an_interrupted_fit_changes_nothing(monkeypatch):
    learner = PriorLearner(estimator()).partial_fit(draw(0))
    before = copy.deepcopy(learner)
    fit = BayesianSkellamSNMF.fit

    def interrupted(self, *args, **kwargs):
        fit(self, *args, **kwargs)
        self.stop_reason_ = "interrupted"
        return self

    monkeypatch.setattr(BayesianSkellamSNMF, "fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        learner.partial_fit(draw(1))
    assert_same(before, learner)


def test_the_dispersion_is_that_of_the_first_matrix():
    """A matrix in another unit has a larger prior mean, and not another dispersion."""
    learner = PriorLearner(estimator("real")).partial_fit(draw(0, likelihood="real"))
    found = learner.dispersion_
    learner.partial_fit(10 * draw(1, likelihood="real"))
    assert (
        learner.dispersion_ == learner.last_.dispersion_ == learner.estimator_.dispersion == found
    )
    assert learner.estimator_.noise is None


def test_the_dispersion_of_the_paper_stays():
    learner = PriorLearner(estimator("real", dispersion=0.0))
    learner.partial_fit(draw(0, likelihood="real"))
    assert learner.dispersion_ == 1.0 and learner.estimator_.dispersion == 0.0


@pytest.mark.parametrize(
    ("name", "value"),
    [("noise", "feature"), ("positive_components", True), ("fit_intercept", True)],
)
def test_what_a_learner_cannot_do_is_refused(name, value):
    learner = PriorLearner(estimator("real", **{name: value}))
    with pytest.raises(ValueError, match=f"^{name} must be .* for the estimator of a PriorLearner"):
        learner.partial_fit(draw(0, likelihood="real"))


def test_same_seed_same_prior_whatever_the_jobs():
    collection = [draw(seed) for seed in range(3)]
    one, two = (
        PriorLearner(estimator(), max_iter=3, n_jobs=n_jobs).fit(collection) for n_jobs in (1, 2)
    )
    assert_same(one, two)
