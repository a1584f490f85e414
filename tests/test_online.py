"""A short version of the paper's online experiment, and of learning from a collection."""

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.special import polygamma

from seminmf import BayesianSkellamSNMF, PriorLearner, sample_skellam_snmf

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from online import REFERENCE, Truth, counts, neutral, shape_error, source_error

N_MATRICES, N_SAMPLES, LAST = 300, 300, 30

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore:.*reached its bound"
)


@pytest.mark.parametrize("seed", [0, 3, 17])
def test_a_stream_is_learned_from(seed):
    """Shapes of atoms come within 10 % and stay there; fits are as good as with the true prior."""
    truth = Truth.draw(seed)
    learner = PriorLearner(neutral(seed), learning_rate="annealed")
    start = shape_error(truth, np.ones(1))
    errors, found, with_true_prior = [], [], []
    for number in range(N_MATRICES):
        X, atoms, activations = truth.matrix(seed, number, N_SAMPLES)
        learner.partial_fit(X)
        errors.append(shape_error(truth, learner.estimator_.atom_shape_prior))
        if number >= N_MATRICES - LAST:
            reference = counts(**REFERENCE, **truth.parameters()).fit(X)
            found.append(source_error(atoms, activations, learner.last_))
            with_true_prior.append(source_error(atoms, activations, reference))
    assert max(errors[N_MATRICES // 2 :]) < 0.1 * start
    assert np.mean(found) < 1.15 * np.mean(with_true_prior)


def sampling_errors(shape, n_matrices):
    """Standard deviations of ln α, if the atoms of so many matrices were known."""
    deviations = np.empty_like(shape)
    for k in range(shape.shape[1]):
        own = shape[:, k].ravel()
        information = n_matrices * (np.diag(polygamma(1, own)) - polygamma(1, own.sum()))
        variances = np.diag(np.linalg.inv(information)).reshape(shape[:, k].shape)
        deviations[:, k] = np.sqrt(variances) / shape[:, k]
    return deviations


def test_a_collection_tells_its_prior():
    """Thirty matrices: within three of the errors that remain if all parameters were seen."""
    seed, n_matrices = 3, 30
    truth = Truth.draw(seed)
    matrices = [truth.matrix(seed, number, 600)[0] for number in range(n_matrices)]
    learner = PriorLearner(neutral(seed)).fit(matrices)
    assert learner.converged_
    learned = learner.estimator_
    order = np.argsort(learned.activation_shape_prior[0])
    shapes = learned.activation_shape_prior[0, order]
    means = shapes / learned.activation_rate_prior[0, order]
    np.testing.assert_allclose(np.log(shapes / truth.activation_shape), 0, atol=0.1)
    np.testing.assert_allclose(means, 300, rtol=0.06)
    logs = np.log(learned.atom_shape_prior[:, order] / truth.atom_shape)
    large = truth.atom_shape > 0.1
    assert np.all(np.abs(logs / sampling_errors(truth.atom_shape, n_matrices))[large] < 3)
    # Data say of a small shape little more than that it is small.
    assert learned.atom_shape_prior[:, order][~large].max() < 0.2


def test_a_wrong_optimum_is_doubted():
    """A start with components exchanged contradicts what is believed, and is corrected."""
    from seminmf._inference import em, evidence, surprise
    from seminmf._posteriors import as_parameters

    truth = Truth.draw(3)
    learner = PriorLearner(counts(**truth.parameters(), max_iter=20, tol=1e-3))
    for number in range(6):
        learner.partial_fit(truth.matrix(3, number, 1000)[0])
    learned = learner._learned
    plan = learner._plan(1000, 3)
    X, atoms, activations = truth.matrix(3, 7, 1000)
    model = counts(**as_parameters(learned.prior), max_iter=1, tol=0).fit(X)
    with model._problem(X, learned.prior, 1.0) as problem:
        exchanged = em.State(activations[:, ::-1].copy(), atoms[:, ::-1].copy())
        good = evidence.maximise(problem, plan.known, learned.belief, em.State(activations, atoms))
        found, weight = surprise.maximise(problem, plan.known, learned.belief, exchanged)
    assert weight == 1
    np.testing.assert_allclose(found.objectives[-1], good.objectives[-1], atol=1)


def test_matrices_that_contradict_count_less():
    """A stream whose activations grow a hundredfold is followed, not at once."""
    learner = PriorLearner(
        BayesianSkellamSNMF(1, likelihood="integer", max_iter=20, tol=1e-3, random_state=0),
        atom_sharing=None,
        learning_rate="annealed",
    )
    means = []
    for number in range(40):
        X, _, _ = sample_skellam_snmf(
            100,
            4,
            1,
            activation_shape=9,
            activation_rate=0.09 if number < 10 else 0.0009,
            random_state=number,
        )
        learner.partial_fit(X)
        prior = learner.estimator_
        means.append(prior.activation_shape_prior.item() / prior.activation_rate_prior.item())
    assert 80 < means[9] < 120
    assert means[10] < 5000
    assert 8000 < means[-1] < 12000
