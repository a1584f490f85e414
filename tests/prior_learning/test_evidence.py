"""Activations integrated out: against brute force, derivatives, and what it is for."""

import numpy as np
import pytest
import reference
from problems import data_of, problem_of
from scipy.special import digamma
from scipy.stats import chi2

from seminmf import BayesianSkellamSNMF, sample_skellam_snmf
from seminmf._algorithms import em
from seminmf._data.dense import DenseSource
from seminmf._data.executor import LocalExecutor
from seminmf._kernels.evidence.quadrature import integrate
from seminmf._model.likelihoods import Integer
from seminmf._prior_learning import evidence
from seminmf._prior_learning.activation_prior import ActivationPrior
from seminmf._prior_learning.evidence import Stage, maximise
from seminmf._prior_learning.gaussian_potential import GaussianPotential
from seminmf._prior_learning.marginal import Task, derivatives, evaluate, prior_constants
from seminmf._prior_learning.nodes import standard_nodes
from seminmf._prior_learning.prior_statistics import Maps

BY_COMPONENT = Maps(
    activation_shape=np.arange(2)[None], activation_rate=np.arange(2)[None], atom_shape=None
)
FIXED = Maps(activation_shape=None, activation_rate=None, atom_shape=None)
WEAK = GaussianPotential.weak(np.zeros(4), 1e-6)


def draw(n_samples, shapes=(5.0, 50.0), seed=0, missing=0.0, mean=100.0):
    shapes = np.array(shapes)
    random = np.random.RandomState(seed)
    return sample_skellam_snmf(
        n_samples,
        3,
        2,
        activation_shape=shapes,
        activation_rate=shapes / mean,
        atom_shape=random.uniform(1, 5, size=(2, 2, 3)),
        missing=missing,
        random_state=seed,
    )


def make_problem(X, shape, rate, atom_shape=1.0, frozen=(), n_threads=1):
    return problem_of(
        data_of(X),
        Integer(),
        n_components=2,
        activation_shape=np.array(shape, dtype=float),
        activation_rate=np.array(rate, dtype=float),
        atom_shape=np.broadcast_to(atom_shape, (2, 2, 3)),
        frozen=frozen,
        n_threads=n_threads,
    )


def integrate_problem(problem, atoms, modes):
    own = ActivationPrior.of(problem.model.priors, BY_COMPONENT)
    return integrate(
        problem.data.source,
        unit=1.0,
        atoms=atoms,
        shape=problem.model.activations.prior.shape,
        rate=problem.model.activations.prior.rate,
        sample_weight=problem.data.weights,
        modes=modes,
        nodes=standard_nodes(2),
        extend=own.scores,
        executor=problem.executor,
    )


def brute_force(x, atoms, shape, rate, n=400, widest=8.0):
    """Evidence, E[λ] and E[ln λ] of one sample, on a fine grid in ln λ."""
    axis = np.linspace(-widest, widest, n)
    logs = [np.log(max(s / r, 1e-3)) + axis for s, r in zip(shape, rate, strict=True)]
    first, second = np.exp(logs[0])[:, None], np.exp(logs[1])[None, :]
    total = (
        shape[0] * logs[0][:, None]
        - rate[0] * first
        + shape[1] * logs[1][None, :]
        - rate[1] * second
    )
    for i, value in enumerate(x):
        if np.isnan(value):
            continue
        rates = [first * atoms[s, 0, i] + second * atoms[s, 1, i] for s in range(2)]
        flat = [
            reference.log_likelihood(value, pair, "integer")
            for pair in zip(rates[0].ravel(), rates[1].ravel(), strict=True)
        ]
        total = total + np.reshape(flat, (n, n))
    largest = total.max()
    weights = np.exp(total - largest)
    cell = (axis[1] - axis[0]) ** 2
    mass = weights.sum()
    means = [(weights * first).sum() / mass, (weights * second).sum() / mass]
    log_means = [
        (weights * logs[0][:, None]).sum() / mass,
        (weights * logs[1][None, :]).sum() / mass,
    ]
    return largest + np.log(mass * cell), means, log_means


@pytest.mark.parametrize(
    ("shapes", "tolerance"), [((5.0, 50.0), 2e-3), ((1.0, 2.0), 2e-2)], ids=["large", "small"]
)
def test_integrals_agree_with_a_fine_grid(shapes, tolerance):
    X, atoms, activations = draw(2, shapes, seed=1)
    X[1, 0] = np.nan
    rate = np.array(shapes) / 100
    problem = make_problem(X, shapes, rate)
    found = integrate_problem(problem, atoms, np.log(activations))
    total = 0.0
    for j, x in enumerate(X):
        value, means, log_means = brute_force(x, atoms, shapes, rate, n=90, widest=4.0)
        total += value
        np.testing.assert_allclose(found.activations[j], means, rtol=5 * tolerance)
        np.testing.assert_allclose(found.log_activations[j], log_means, atol=5 * tolerance)
    np.testing.assert_allclose(found.evidence, total, atol=10 * tolerance)


def test_a_sample_without_data_has_its_prior():
    X, atoms, activations = draw(4)
    X[2] = np.nan
    shapes, rates = np.array([5.0, 50.0]), np.array([0.05, 0.5])
    found = integrate_problem(make_problem(X, shapes, rates), atoms, np.log(activations))
    np.testing.assert_allclose(found.activations[2], shapes / rates, rtol=1e-3)
    np.testing.assert_allclose(found.log_activations[2], digamma(shapes) - np.log(rates), atol=2e-3)


@pytest.mark.parametrize(
    ("n_components", "shape", "tolerance"),
    [(1, 0.2, 0.15), (1, 0.5, 0.05), (1, 5.0, 0.01), (5, 0.5, 0.4), (5, 5.0, 0.02), (12, 0.5, 0.4)],
)
def test_samples_without_data_have_their_prior_for_any_shape(n_components, shape, tolerance):
    """The rules integrate gammas, of which they know the mode and the curvature."""
    nodes = standard_nodes(n_components)
    atoms = np.full((2, n_components, 3), 1 / 6)
    found = integrate(
        DenseSource(np.full((2, 3), np.nan)),
        unit=1.0,
        atoms=atoms,
        shape=np.full((1, n_components), shape),
        rate=np.full((1, n_components), 0.01),
        sample_weight=np.ones(2),
        modes=np.zeros((2, n_components)),
        nodes=nodes,
        extend=lambda means, logs: np.zeros((len(means), 0)),
        executor=LocalExecutor(),
    )
    expected = digamma(shape) - np.log(0.01)
    np.testing.assert_allclose(found.log_activations.mean(), expected, atol=tolerance)


def test_more_components_take_points_of_a_sequence():
    """Fewer than a rule on each axis has, with the moments of the normal distribution."""
    nodes = standard_nodes(6)
    assert len(nodes.points) == 6 and nodes.points.shape[1] < 3**6
    weights = np.exp(nodes.log_weights - 0.5 * np.sum(nodes.points**2, axis=0))
    normal = weights * (2 * np.pi) ** -3
    np.testing.assert_allclose(normal.sum(), 1)
    np.testing.assert_allclose(nodes.points @ normal, 0, atol=1e-12)
    np.testing.assert_allclose((nodes.points**2) @ normal, 1, atol=0.1)


def objective_at(task, point, step):
    atoms = point.atoms * np.exp(step[:12].reshape(2, 2, 3))
    own = point.activation_prior.at(point.activation_prior.logs + step[12:])
    return evaluate(task, atoms, own, point.marginal.modes).objective


def test_slopes_are_the_derivatives_of_the_objective():
    X, atoms, activations = draw(300, missing=0.1)
    problem = make_problem(X, [4.0, 60.0], [0.05, 0.5])
    random = np.random.RandomState(0)
    root = random.normal(size=(4, 4))
    potential = GaussianPotential(root @ root.T, random.normal(size=4))
    task = Task(problem=problem, unit=1.0, nodes=standard_nodes(2), potential=potential)
    own = ActivationPrior.of(problem.model.priors, BY_COMPONENT)
    moved = atoms * np.exp(0.1 * random.normal(size=atoms.shape))
    point = evaluate(task, moved, own, np.log(activations))
    slope, curvature = derivatives(task, point)
    assert np.linalg.eigvalsh(curvature).min() > 0
    for n in range(16):
        step = np.zeros(16)
        step[n] = 1e-4
        numeric = (objective_at(task, point, step) - objective_at(task, point, -step)) / 2e-4
        np.testing.assert_allclose(slope[n], numeric, rtol=1e-5, atol=0.01)


def test_objective_never_falls_and_threads_do_not_matter(many_tasks):
    X, atoms, activations = draw(2000, missing=0.05)
    start = em.Factors(activations, np.full((2, 2, 3), 1 / 6) + 0.1 * atoms)
    found = [
        maximise(
            make_problem(X, [1.0, 2.0], [0.01, 0.02], n_threads=n),
            BY_COMPONENT,
            WEAK,
            start,
            (Stage(n_samples=0, order=5, max_iter=40, tol=0.1),),
        )
        for n in (1, 2)
    ]
    assert len(found[0].objectives) > 3
    assert np.all(np.diff(found[0].objectives) > 0)
    np.testing.assert_array_equal(found[0].atoms, found[1].atoms)
    np.testing.assert_allclose(found[0].atoms.sum(axis=(0, 2)), 1)


def test_few_samples_first_end_at_the_same_optimum():
    X, atoms, activations = draw(3000)
    problem = make_problem(X, [1.0, 2.0], [0.01, 0.02])
    start = em.Factors(activations, atoms)
    both, one = (
        maximise(problem, BY_COMPONENT, WEAK, start, stages)
        for stages in (evidence.STAGES, evidence.STAGES[-1:])
    )
    np.testing.assert_allclose(both.objectives[-1], one.objectives[-1], atol=0.2)
    assert one.own.conflict(both.own) < 1


def test_a_potential_holds_the_prior():
    X, atoms, activations = draw(200)
    shapes, rates = np.array([3.0, 20.0]), np.array([0.02, 0.3])
    problem = make_problem(X, [1.0, 1.0], [0.01, 0.01])
    start = em.Factors(activations, atoms)
    firm = GaussianPotential.weak(np.log([*shapes, *rates]), 1e7)
    held = maximise(problem, BY_COMPONENT, firm, start).prior
    np.testing.assert_allclose(held.activations.shape[0], shapes, rtol=1e-3)
    np.testing.assert_allclose(held.activations.rate[0], rates, rtol=1e-3)
    for maps, potential in (
        (FIXED, GaussianPotential.weak(np.zeros(0), 1.0)),
        (BY_COMPONENT, None),
    ):
        fixed = maximise(problem, maps, potential, start).prior
        np.testing.assert_array_equal(
            fixed.activations.shape, problem.model.activations.prior.shape
        )


def test_frozen_atoms_stay():
    X, atoms, activations = draw(200)
    problem = make_problem(X, [1.0, 1.0], [0.01, 0.01], frozen=[0])
    found = maximise(problem, BY_COMPONENT, WEAK, em.Factors(activations, atoms))
    np.testing.assert_allclose(found.atoms[:, 0], atoms[:, 0], rtol=1e-12)
    assert np.abs(found.atoms[:, 1] / atoms[:, 1] - 1).max() > 1e-3


def test_what_halves_say_adds_up_to_what_the_whole_says():
    """Potentials of two halves of the samples, with the atoms known, against that of all."""
    X, atoms, activations = draw(4000)
    potentials = []
    for rows in (slice(0, 2000), slice(2000, 4000), slice(0, 4000)):
        problem = make_problem(X[rows], [4.0, 60.0], [0.05, 0.5], atom_shape=1e9 * atoms)
        start = em.Factors(activations[rows], atoms)
        potentials.append(maximise(problem, BY_COMPONENT, WEAK, start).own)
    together = potentials[0].joined(potentials[1])
    deviations = np.sqrt(np.diag(np.linalg.inv(potentials[2].precision)))
    assert np.all(np.abs(together.mean - potentials[2].mean) < deviations)
    np.testing.assert_allclose(together.precision, potentials[2].precision, rtol=0.05)
    assert potentials[0].conflict(potentials[1]) < chi2.isf(1e-3, df=4)


@pytest.mark.slow
def test_it_finds_what_the_mean_field_misses():
    """The mean field pulls the components apart; the evidence is better at the truth."""
    X, atoms, activations = draw(3000, mean=300.0, seed=3)
    shapes = np.array([5.0, 50.0])
    model = BayesianSkellamSNMF(
        2,
        likelihood="integer",
        activation_shape_prior=shapes,
        activation_rate_prior=shapes / 300,
        random_state=0,
    ).fit(X)
    problem = make_problem(X, shapes, shapes / 300)
    found = maximise(problem, FIXED, None, em.Factors(model.activations_, model.atoms_))
    errors = [
        min(np.abs(other[:, order] - atoms).max() for order in ([0, 1], [1, 0]))
        for other in (model.atoms_, found.atoms)
    ]
    assert errors[1] < 0.5 * errors[0]
    own = ActivationPrior.of(problem.model.priors, FIXED)
    task = Task(problem=problem, unit=1.0, nodes=standard_nodes(2), potential=None)
    truth = evaluate(task, atoms, own, np.log(activations))
    mean_field = evaluate(task, model.atoms_, own, np.log(model.activations_))
    assert mean_field.objective < truth.objective - 10
    assert found.objectives[-1] > truth.objective - 10


def test_total_evidence_of_a_small_problem():
    """One feature with data: the atoms' integral by draws from their prior."""
    random = np.random.RandomState(0)
    X = np.full((30, 3), np.nan)
    X[:, 0] = random.poisson(10, size=30) - random.poisson(10, size=30)
    problem = make_problem(X, [30.0, 30.0], [1.0, 1.0], atom_shape=6.0)
    start = em.Factors(np.full((30, 2), 30.0), np.full((2, 2, 3), 1 / 6))
    stage = Stage(n_samples=0, order=5, max_iter=40, tol=1e-6)
    found = maximise(problem, FIXED, None, start, (stage,))
    own = ActivationPrior.of(problem.model.priors, FIXED)
    task = Task(problem=problem, unit=1.0, nodes=standard_nodes(2), potential=None)
    logs = []
    for _ in range(4000):
        atoms = random.dirichlet(np.full(6, 6.0), size=2).reshape(2, 2, 3).transpose(1, 0, 2)
        point = evaluate(task, atoms, own, np.log(start.activations))
        logs.append(point.marginal.evidence + prior_constants(problem, own))
    largest = max(logs)
    exact = largest + np.log(np.mean(np.exp(np.array(logs) - largest)))
    np.testing.assert_allclose(found.evidence, exact, atol=0.5)
