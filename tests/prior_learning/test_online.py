"""A short version of the paper's online experiment, and of learning from a collection."""

import numpy as np
import pytest
from seen import most_likely_dirichlet, most_likely_gamma, sampling_errors

from seminmf import BayesianSkellamSNMF, PriorLearner, sample_skellam_snmf
from seminmf._algorithms import em
from seminmf._prior_learning import conflict, evidence
from seminmf._prior_learning.posteriors import as_parameters
from seminmf.experiments.online import (
    REFERENCE,
    STREAM,
    counts,
    neutral,
    shape_error,
    source_errors,
)

N_MATRICES, N_SAMPLES, LAST = 300, 300, 30

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore:.*reached its bound"
)


@pytest.mark.parametrize(
    "seed", [0, pytest.param(3, marks=pytest.mark.slow), pytest.param(17, marks=pytest.mark.slow)]
)
def test_a_stream_is_learned_from(seed):
    """Shapes of atoms come within 10 % and stay there; fits are as good as with the true prior."""
    truth = STREAM.draw(seed)
    learner = PriorLearner(neutral(seed), learning_rate="annealed")
    start = shape_error(truth, np.ones(1))
    errors, found, with_true_prior = [], [], []
    for number in range(N_MATRICES):
        X, atoms, activations = truth.matrix(seed, number, N_SAMPLES)
        learner.partial_fit(X)
        errors.append(shape_error(truth, learner.estimator_.atom_shape_prior))
        if number >= N_MATRICES - LAST:
            reference = counts(**REFERENCE, **truth.parameters()).fit(X)
            found.append(source_errors(atoms, activations, learner.last_)[0])
            with_true_prior.append(source_errors(atoms, activations, reference)[0])
    assert max(errors[N_MATRICES // 2 :]) < 0.1 * start
    assert np.mean(found) < 1.15 * np.mean(with_true_prior)


@pytest.mark.slow
def test_a_collection_tells_its_prior():
    """Thirty matrices: what is learned is what would be learned if all parameters were seen."""
    seed, n_matrices = 3, 30
    truth = STREAM.draw(seed)
    drawn = [truth.matrix(seed, number, 600) for number in range(n_matrices)]
    learner = PriorLearner(neutral(seed)).fit([X for X, _, _ in drawn])
    assert learner.converged_
    shapes, rates = most_likely_gamma(np.concatenate([part[2] for part in drawn]))
    atom_shapes = most_likely_dirichlet(np.stack([part[1] for part in drawn]))
    learned = learner.estimator_
    order = np.argsort(learned.activation_shape_prior[0])
    learned_shapes = learned.activation_shape_prior[0, order]
    np.testing.assert_allclose(learned_shapes, shapes, rtol=0.1)
    means = learned_shapes / learned.activation_rate_prior[0, order]
    np.testing.assert_allclose(means, shapes / rates, rtol=0.06)
    large = truth.atom_shape > 0.1
    errors = sampling_errors(truth.atom_shape, n_matrices)
    learned_atom_shapes = learned.atom_shape_prior[:, order]
    differences = np.log(learned_atom_shapes / atom_shapes) / errors
    assert np.all(np.abs(differences[large]) < 0.5)
    # Data say of a small shape little more than that it is small.
    assert learned_atom_shapes[~large].max() < 0.1


def test_a_wrong_optimum_is_doubted():
    """A start with components exchanged contradicts what is believed, and is corrected."""
    truth = STREAM.draw(1)
    learner = PriorLearner(counts(**truth.parameters(), max_iter=20, tol=1e-3))
    for number in range(6):
        learner.partial_fit(truth.matrix(1, number, 1000)[0])
    learned = learner._learned
    plan = learner._plan(1000, 3)
    X, atoms, activations = truth.matrix(1, 7, 1000)
    model = counts(**as_parameters(learned.prior), max_iter=1, tol=0).fit(X)
    with model._problem(model._check_data(X), learned.prior, 1.0) as problem:
        exchanged = em.Factors(activations[:, ::-1].copy(), atoms[:, ::-1].copy())
        known = problem, plan.known, learned.potential
        good = evidence.maximise(*known, em.Factors(activations, atoms))
        wrong = evidence.maximise(*known, exchanged)
        found, weight = conflict.maximise(*known, exchanged)
    assert wrong.objectives[-1] < good.objectives[-1] - 100  # alone, it would stay there
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
