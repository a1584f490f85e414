"""The Newton solver: what its sweeps return, and what it promises beyond the conformance tests."""

import kinds
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems import data_of, problem_of
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from seminmf import SkellamSNMF
from seminmf._algorithms import em, loop, newton, vb
from seminmf._algorithms.acceleration import accelerate
from seminmf._algorithms.activations import solve_posterior
from seminmf._algorithms.problem import Problem
from seminmf._algorithms.start import start
from seminmf._data.executor import LocalExecutor
from seminmf._kernels.newton.features import move_features
from seminmf._kernels.newton.sweep import NO_STEP, ONE_STEP, PRECISE, RowProblems, sweep
from seminmf._model.likelihoods import Integer, Real
from seminmf._model.penalties import Maximum

LIKELIHOODS = {"real": Real(1.0), "integer": Integer()}


def make_problem(likelihood="real", n_samples=70, n_features=9, n_components=3):
    rng = np.random.default_rng(0)
    components = rng.normal(size=(n_components, n_features))
    X = rng.gamma(1.0, 10.0, (n_samples, n_components)) @ components
    X += rng.normal(size=X.shape)
    X = X.round() if likelihood == "integer" else X
    X[rng.random(X.shape) < 0.1] = np.nan
    weights = rng.uniform(0.5, 2.0, n_samples)
    return problem_of(data_of(X, weights), LIKELIHOODS[likelihood], n_components)


def make_point(problem, n_iter=5):
    point = start(problem, "random", np.random.RandomState(0))
    for _ in range(n_iter):
        point, _ = em.step(problem, point)
    return point


def run_sweep(problem, point, control, threshold=0.0, gains=None):
    problems = RowProblems(
        likelihood=problem.model.likelihood,
        penalty=Maximum(problem.mass),
        prior=problem.model.activations.prior,
        atoms=point.atoms,
        weights=problem.data.weights,
    )
    return sweep(
        problem.data.source,
        problems,
        point.activations.copy(),
        control,
        problem.executor,
        gains=np.full(len(point.activations), np.inf) if gains is None else gains,
        threshold=threshold,
        collect=True,
    )


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_collected_slopes_are_the_gradient(likelihood):
    """Of minus the log-likelihood in unnormalised atoms, against differences of the E-step's."""
    problem = make_problem(likelihood)
    point = make_point(problem)
    found = run_sweep(problem, point, NO_STEP)
    rng = np.random.default_rng(1)
    for _ in range(5):
        direction = rng.normal(size=point.atoms.shape) * point.atoms
        values = [
            problem.expectations(point.activations, point.atoms + step * direction).data_term
            for step in (-1e-5, 1e-5)
        ]
        expected = -(values[1] - values[0]) / 2e-5
        assert np.sum(found.slopes * direction) == pytest.approx(expected, rel=1e-4, abs=1e-3)


def test_collected_blocks_are_the_hessian():
    """d²D along a direction of the atoms, for real data, against second differences."""
    problem = make_problem("real")
    point = make_point(problem)
    blocks = run_sweep(problem, point, NO_STEP).hessian_blocks
    n_components, n_features = point.atoms.shape[1:]
    rows, columns = np.tril_indices(n_components)
    hessian = np.zeros((n_features, 2, n_components, 2, n_components))
    for t, (s, u) in enumerate(((0, 0), (0, 1), (1, 1))):
        for a, b in ((rows, columns), (columns, rows)):
            hessian[:, s, a, u, b] = blocks[t].T
            hessian[:, u, a, s, b] = blocks[t].T
    rng = np.random.default_rng(1)
    for _ in range(5):
        direction = rng.normal(size=point.atoms.shape) * point.atoms
        found = np.einsum("isktl,ski,tli->", hessian, direction, direction)
        values = [
            problem.expectations(point.activations, point.atoms + step * direction).data_term
            for step in (-1e-3, 0.0, 1e-3)
        ]
        expected = -(values[0] - 2 * values[1] + values[2]) / 1e-6
        assert found == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_sweep_values_are_those_of_the_estep(likelihood):
    problem = make_problem(likelihood)
    point = make_point(problem)
    for control in (NO_STEP, ONE_STEP, PRECISE):
        found = run_sweep(problem, point, control)
        here = em.Factors(found.activations, point.atoms)
        expected = em.evaluate(problem, here)
        assert -found.values @ problem.data.weights == pytest.approx(expected, rel=1e-12)
        if control.own_units:
            continue  # features have no common unit then
        data_term = problem.expectations(*here).data_term
        assert -found.features.sum() == pytest.approx(data_term, rel=1e-12)
        before = problem.expectations(*point).data_term
        assert -found.features_before.sum() == pytest.approx(before, rel=1e-12)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_a_step_lowers_every_sample(likelihood):
    problem = make_problem(likelihood)
    point = make_point(problem)
    before = run_sweep(problem, point, NO_STEP).values
    once = run_sweep(problem, point, ONE_STEP)
    assert (once.values <= before).all() and (once.values < before).mean() > 0.9
    assert_allclose(once.gains, before - once.values, atol=1e-12 * np.abs(before).max())
    assert (run_sweep(problem, point, PRECISE).values <= once.values + 1e-12).all()


def test_samples_with_nothing_to_gain_are_left_alone():
    problem = make_problem()
    point = make_point(problem)
    gains = np.ones(len(point.activations))
    gains[:32] = 1e-9
    found = run_sweep(problem, point, ONE_STEP, threshold=1e-6, gains=gains)
    assert_array_equal(found.activations[:32], point.activations[:32])
    assert (found.activations[32:] != point.activations[32:]).any(axis=1).all()
    # They come back after a few sweeps.
    n_sweeps = 1
    while (gains[:32] < 1e-6).all():
        gains[32:] = 1.0
        found = run_sweep(problem, point, ONE_STEP, threshold=1e-6, gains=gains)
        n_sweeps += 1
    assert 2 < n_sweeps < 20
    assert_array_equal(found.activations[:32], point.activations[:32])
    found = run_sweep(problem, point, ONE_STEP, threshold=1e-6, gains=gains)
    assert (found.activations[:32] != point.activations[:32]).any(axis=1).all()


def test_moves_solve_the_quadratic_problem():
    """Where bounds and the shortening of long steps do not bite."""
    rng = np.random.default_rng(2)
    n_components, n_features = 2, 5
    roots = rng.normal(size=(n_features, 40, n_components))
    u = rng.uniform(0.5, 2.0, (2, n_features, 40))
    design = np.concatenate([u[0][..., None] * roots, -u[1][..., None] * roots], axis=2)
    hessians = 1e6 * np.einsum("ijk,ijl->ikl", design, design)
    rows, columns = np.tril_indices(n_components)
    blocks = np.stack(
        [
            hessians[:, rows, columns].T,
            hessians[:, n_components + rows, columns].T,
            hessians[:, n_components + rows, n_components + columns].T,
        ]
    )
    slopes = rng.normal(size=(2, n_components, n_features))
    atoms = np.full((2, n_components, n_features), 0.1)
    frozen = np.zeros(n_components, dtype=bool)
    nothing = np.zeros((1, 1, 1)), np.zeros((1, 1))
    moves = move_features(slopes, blocks, atoms, *nothing, np.stack([frozen, frozen]))
    flat = slopes.reshape(2 * n_components, n_features).T
    exact = np.linalg.solve(hessians, -flat[..., None])[..., 0]
    found = moves.reshape(2 * n_components, n_features).T
    model = 0.5 * np.einsum("ik,ikl,il->i", found, hessians, found) + np.sum(flat * found, axis=1)
    best = 0.5 * np.einsum("ik,ik->i", flat, exact)
    assert_allclose(model, best, rtol=0.05)
    kept = move_features(slopes, blocks, atoms, *nothing, np.array([[False, True]] * 2))
    assert np.abs(kept[:, 1]).max() < 1e-200


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_groups_of_features_change_little(monkeypatch, likelihood):
    """Hessians that do not fit in memory at once: the same steps but for rounding."""
    problem = make_problem(likelihood, n_features=40)
    point = make_point(problem)
    state = newton.after_warm_up(problem, point)
    whole, _ = newton.step(problem, state)
    monkeypatch.setattr(newton, "_HESSIANS", 1)
    grouped, _ = newton.step(problem, state)
    assert_allclose(grouped.activations, whole.activations, rtol=1e-9)
    assert_allclose(grouped.moves, whole.moves, rtol=1e-3, atol=1e-6)
    stopping = loop.Stopping(max_iter=60, tol=0)
    result = loop.run(newton, problem, lambda: point, stopping, _Silent())
    assert np.min(np.diff(result.objectives)) >= 0


class _Silent:
    def update(self, objective):
        pass


@pytest.mark.parametrize("sizes", [(3, 5, 2), (40, 3, 7), (17, 1, 2), (1, 30, 1), (33, 16, 20)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_sizes(sizes, dtype):
    """Fewer samples than lanes, more components than features, single rows and columns."""
    n_samples, n_features, n_components = sizes
    X = np.random.default_rng(0).normal(size=(n_samples, n_features)).astype(dtype)
    model = SkellamSNMF(n_components, random_state=0, max_iter=5000).fit(X)
    assert model.converged_
    assert np.isfinite(model.objectives_).all()
    assert np.min(np.diff(model.objectives_)) >= 0
    assert np.isfinite(model.activations_).all() and np.isfinite(model.atoms_).all()


def test_threads_change_no_bit():
    X = np.random.default_rng(0).normal(size=(3000, 60)) + 1
    one, two = (
        SkellamSNMF(5, random_state=0, max_iter=25, tol=0, n_jobs=n_jobs) for n_jobs in (1, 2)
    )
    with pytest.warns(UserWarning):
        one.fit(X), two.fit(X)
    assert_array_equal(one.atoms_, two.atoms_)
    assert_array_equal(one.activations_, two.activations_)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_newton_ends_no_worse_than_em(likelihood):
    """From the same start, with patience, on an easy problem."""
    problem = make_problem(likelihood)
    X = problem.data.source.rows(0, 70)
    fits = [
        SkellamSNMF(
            3, likelihood=likelihood, solver=solver, tol=1e-7, max_iter=20_000, random_state=0
        ).fit(X)
        for solver in ("newton", "em")
    ]
    assert fits[0].objective_ >= fits[1].objective_ - 1e-4 * abs(fits[1].objective_)
    assert fits[0].n_iter_ < fits[1].n_iter_


def test_posteriors_are_solved_to_precision():
    """The paper's fixed point, also where a sample's value is a small difference of large terms."""
    problem = make_problem(n_samples=500, n_features=40, n_components=5)
    rng = np.random.default_rng(1)
    components = rng.normal(size=(5, 40))
    X = rng.gamma(0.5, 2.0, (500, 5)) @ components + 0.1 * rng.normal(size=(500, 40))
    problem = problem_of(data_of(X, problem.data.weights), Real(unit=640.0, dispersion=640.0), 5)
    parts = np.maximum([components, -components], 0) + 0.01
    atom_shape = 1 + 1e5 * parts / parts.sum(axis=(0, 2), keepdims=True)
    shape = solve_posterior(problem, atom_shape)
    atoms, _ = problem.model.atoms.prior.geometric_means(atom_shape)
    (following,), _ = vb.step_samples(problem, shape.copy(), atoms)
    assert_allclose(following, shape, rtol=1e-9)


# --- Sparse data and many components ---


@pytest.mark.parametrize("zeros", ["missing", "observed"])
@pytest.mark.parametrize(
    "options", [{}, {"dispersion": 0.0}, {"likelihood": "integer"}, {"fit_intercept": True}]
)
def test_sparse_and_dense_end_at_the_same(options, zeros):
    rng = np.random.default_rng(0)
    X = rng.gamma(0.5, 8.0, (150, 3)) @ rng.normal(size=(3, 20)) + rng.normal(size=(150, 20))
    X = np.rint(X) if options.get("likelihood") == "integer" else X
    seen = rng.random(X.shape) < 0.4
    weights = rng.uniform(0.5, 2.0, 150)
    stored = sparse.csr_matrix((X[seen], np.nonzero(seen)), shape=X.shape)
    dense = np.where(seen, X, np.nan if zeros == "missing" else 0.0)
    options = {"random_state": 0, "tol": 1e-6, "sparse_zeros": zeros, **options}
    fits = [SkellamSNMF(3, **options).fit(data, sample_weight=weights) for data in (stored, dense)]
    assert [fit.solver_ for fit in fits] == ["newton", "newton"]
    assert fits[0].objective_ == pytest.approx(fits[1].objective_, rel=1e-6)
    assert_allclose(fits[0].components_, fits[1].components_, atol=1e-4)
    for fit in fits:
        assert np.all(np.diff(fit.objectives_) >= -1e-9 * abs(fit.objective_))


@pytest.mark.parametrize("at_once", [7, 1000])
@pytest.mark.parametrize("dispersion", [0.0, "auto"])
def test_iterations_on_stored_cells_are_those_on_all(dispersion, at_once, monkeypatch):
    """Also where features are worked on in groups, and after proposals that fail."""
    rng = np.random.default_rng(1)
    X = rng.gamma(0.5, 2.0, (90, 3)) @ rng.normal(size=(3, 30)) + 0.3 * rng.normal(size=(90, 30))
    X[rng.random(X.shape) < 0.5] = np.nan
    monkeypatch.setattr(newton, "_features_at_once", lambda problem: min(30, at_once))
    failed = []
    monkeypatch.setattr(newton, "_failed", _counting(newton._failed, failed))
    options = {"dispersion": dispersion, "random_state": 0, "max_iter": 80, "tol": 1e-6}
    dense = SkellamSNMF(3, **options).fit(X)
    n_dense = len(failed)
    few = SkellamSNMF(3, **options).fit(kinds.stored(X))
    if dispersion == 0.0:  # next to noise rounding decides on the last digits that are gained
        assert_allclose(few.objectives_, dense.objectives_, rtol=1e-9)
        assert len(failed) == 2 * n_dense
    in_chunks = SkellamSNMF(3, **options).fit(kinds.stored_chunks(X))
    for model in (few, in_chunks):
        assert model.objective_ == pytest.approx(dense.objective_, rel=1e-6)


def _counting(function, calls):
    def counted(*arguments):
        calls.append(1)
        return function(*arguments)

    return counted


def test_groups_of_features_have_their_noise():
    """Many components, whose Hessians are collected for some features at a time."""
    rng = np.random.default_rng(1)
    K = 40
    X = rng.gamma(0.5, 1.0, (200, K)) @ rng.normal(size=(K, 120)) + rng.normal(size=(200, 120))
    model = SkellamSNMF(K, random_state=0, n_init=1, max_iter=5, tol=0)
    with pytest.warns(ConvergenceWarning):
        model.fit(X)
    assert np.all(np.diff(model.objectives_) >= 0)


def test_a_shape_below_1_falls_back_to_em():
    X = np.random.default_rng(0).normal(size=(30, 5))
    model = SkellamSNMF(2, activation_shape_prior=0.5, random_state=0).fit(X)
    assert model.solver_ == "em"


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_many_components_begin_with_accelerated_em(likelihood):
    """Where a Newton iteration is dear, cycles of SQUAREM come first; nothing ever falls."""
    n_components = newton._MANY_COMPONENTS
    problem = make_problem(likelihood, 40, 12, n_components)
    point = start(problem, "random", np.random.RandomState(0))
    squarem = accelerate(em, "squarem")
    expected = squarem.start(problem, point)
    for _ in range(newton._CYCLES_AT_ONCE):
        expected, _ = squarem.step(problem, expected)
    state, _ = newton.step(problem, newton.start(problem, point))
    assert_array_equal(state.atoms, expected.point.atoms)
    objectives = []
    for _ in range(newton._WARM_UP + 5):
        state, info = newton.step(problem, state)
        objectives.append(info.objective)
    assert np.all(np.diff(objectives) >= -1e-12 * np.abs(objectives[1:]))
    assert objectives[-1] > objectives[0]


def noisy_problem(gaps=0.0):
    """Finite dispersion that is small against the noise, and what a search would start from."""
    rng = np.random.default_rng(1)
    signal = rng.gamma(1.0, size=(150, 3)) @ rng.normal(size=(3, 8))
    X = signal + rng.normal(size=signal.shape) * 0.3
    X[rng.random(X.shape) < gaps] = np.nan
    model = SkellamSNMF(3, random_state=0).fit(X)
    data = data_of(X, rng.uniform(0.5, 2.0, len(X)))
    problem = model._model(data, model._priors, model.dispersion_)
    return Problem(problem, data, LocalExecutor()), em.Factors(
        model.activations_ / model._unit, model.atoms_
    )


@pytest.mark.parametrize("gaps", [0.0, 0.2])
def test_features_may_share_a_hessian_next_to_noise(gaps):
    """It is near that of each feature, and the slopes are the same."""
    problem, point = noisy_problem(gaps)
    _, (_, slopes, blocks) = problem.over_samples(
        newton._look_samples, (point.activations,), point.atoms, 0, 8
    )
    shared = newton._shared(problem, point.activations, point.atoms)
    own_slopes, own_blocks = shared.of_features(slice(0, 8))
    assert_allclose(own_slopes, slopes, rtol=1e-7, atol=1e-7 * np.abs(slopes).max())
    assert np.abs(own_blocks - blocks).max() < (0.05 if gaps == 0 else 0.3) * np.abs(blocks).max()


@pytest.mark.parametrize("gaps", [0.0, 0.2])
def test_a_shared_hessian_leads_to_the_same_optimum(gaps, monkeypatch):
    problem, point = noisy_problem(gaps)
    ends = []
    for many in (2, 10**9):
        monkeypatch.setattr(newton, "_MANY_COMPONENTS", many)
        assert newton._shares_curvature(problem) == (many == 2)
        state, objectives = newton.after_warm_up(problem, point), []
        for _ in range(60):
            state, info = newton.step(problem, state)
            objectives.append(info.objective)
        assert np.all(np.diff(objectives) >= 0)
        ends.append(objectives[-1])
    assert ends[0] == pytest.approx(ends[1], rel=1e-5)
