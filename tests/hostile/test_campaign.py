"""Random sequences of public calls: no crash, no hybrid, each answer that of a fresh fit."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from seminmf import BayesianSkellamSNMF, EuclideanSNMF, SkellamSNMF, load
from seminmf._algorithms import loop
from seminmf._estimators import runs, validation

LEARNING = ("fit", "fit_transform", "fit_predict", "partial_fit")
ANSWERS = ("transform", "predict", "impute", "score", "sources")
CHANGES = {
    "n_components": [1, 2, 3, 5, 0, -1, 2.5, "two", None],
    "likelihood": ["real", "integer", "nonsense"],
    "activation_shape_prior": [1.0, 2.0, 0.5, [[1.0, 2.0]], np.ones((9, 2)), 0.0, np.nan],
    "activation_rate_prior": [1e-3, 1.0, [[0.1, 0.2, 0.3]], -1.0],
    "atom_shape_prior": [1.0, 1.5, np.ones((2, 2, 4)), "x"],
    "init": ["random", "kmeans", "svd", "prior", "map", "nowhere"],
    "solver": ["newton", "em", "hals", "multiplicative"],
    "acceleration": [None, "squarem", "parabolic"],
    "max_iter": [0, 1, 7, -3],
    "tol": [0.0, 1e-4, np.inf],
    "n_init": [1, 2, 0],
    "batch_size": [None, 4, 0],
    "sparse_zeros": ["missing", "observed", "?"],
    "check_integer": [True, False],
    "dispersion": ["auto", 1.0, 0.3, 0.0, -1.0],
    "noise": ["auto", "same", None, "loud"],
    "positive_components": [False, True],
    "fit_intercept": [False, True],
    "n_jobs": [None, 1, 2],
    "random_state": [0, 1],
}
# Words of errors that nobody wrote for users.
INTERNAL = ("unpack", "broadcast together", "NoneType", "out of bounds", "not supported between")
# Where a fit is made to fail.
PLACES = [
    (validation, "record_features"),
    (validation, "check_priors"),
    (runs, "run"),
    (loop.Stopping, "is_met"),
]


class Injected(Exception):
    """A failure that was put in."""


def make_data(random):
    """Some matrix that a user may hand in."""
    n_features = 4 if random.rand() < 0.8 else 5
    X = random.normal(size=(random.randint(1, 12), n_features)) * 10.0 ** random.randint(-3, 4)
    kind = random.choice(
        ["plain", "integers", "gaps", "single", "sparse", "table", "fortran", "zeros", "bad"]
    )
    if kind == "integers":
        return np.round(X)
    if kind == "gaps":
        X[random.rand(*X.shape) < 0.4] = np.nan
    if kind == "single":
        return X.astype(np.float32)
    if kind == "sparse":
        return sparse.csr_array(np.where(random.rand(*X.shape) < 0.5, np.round(X), 0))
    if kind == "table":
        pandas = pytest.importorskip("pandas")
        return pandas.DataFrame(X, columns=[f"f{i}" for i in range(n_features)])
    if kind == "fortran":
        return np.asfortranarray(X)
    if kind == "zeros":
        return np.zeros_like(X)
    if kind == "bad":
        bad = [X[0], X * np.inf, X + 1j, np.full_like(X, np.nan), X.astype(str), X[:0], None, "X"]
        return bad[random.randint(len(bad))]
    return X


class Trial:
    """An estimator, and what its last successful fits were made of."""

    def __init__(self, seed, folder):
        self.random = np.random.RandomState(seed)
        self.folder = folder
        kinds = SkellamSNMF, BayesianSkellamSNMF, EuclideanSNMF
        kind = kinds[self.random.randint(3)]
        self.model = kind(2, max_iter=7, random_state=0)
        self.fresh = None

    def state(self):
        return pickle.dumps(vars(self.model))

    def call(self):
        """One call, and what must hold after it."""
        names = [*LEARNING, *ANSWERS, *ANSWERS, "set_params", "set_params", "copy", "activations"]
        name = names[self.random.randint(len(names))]
        if name == "set_params":
            self.change_a_parameter()
        elif name == "copy":
            self.copy()
        elif hasattr(self.model, name) or name == "activations":
            {True: self.learn, False: self.ask}[name in LEARNING](name)

    def change_a_parameter(self):
        own = [name for name in CHANGES if name in self.model.get_params()]
        name = own[self.random.randint(len(own))]
        values = CHANGES[name]
        # More often what is accepted, so that most fits succeed.
        number = 0 if self.random.rand() < 0.6 else self.random.randint(len(values))
        self.model.set_params(**{name: values[number]})

    def learn(self, name):
        X = make_data(self.random)
        before = self.state()
        try:
            with pytest.MonkeyPatch.context() as patch:
                if self.random.rand() < 0.2:
                    self.inject(patch)
                getattr(self.model, name)(X)
        except (ValueError, TypeError, Injected) as error:
            self.check_sentence(error)
            if name != "fit_transform" and name != "fit_predict":
                assert self.state() == before
            elif self.state() != before:
                # The fit was right; a prior with a row for each sample lets nothing else follow.
                self.fresh = clone(self.model).fit(X)
            return
        if name == "partial_fit":
            fresh = clone(self.model) if self.fresh is None else self.fresh
            parameters = self.model.get_params()
            self.fresh = fresh.set_params(**parameters).partial_fit(X)
        else:
            self.fresh = clone(self.model).fit(X)
        for attribute in ("activations_", "components_"):
            assert_array_equal(getattr(self.model, attribute), getattr(self.fresh, attribute))
            assert np.all(np.isfinite(getattr(self.model, attribute)))

    def inject(self, patch):
        module, name = PLACES[self.random.randint(len(PLACES))]

        def broken(*args, **named):
            raise Injected("Broken.")

        patch.setattr(module, name, broken)

    def ask(self, name):
        X = make_data(self.random)
        if name == "activations":
            name, X = "inverse_transform", self.random.rand(3, self.random.randint(1, 5))
        before = self.state()
        try:
            answer = getattr(self.model, name)(X)
        except NotFittedError:
            assert self.fresh is None
        except (ValueError, TypeError) as error:
            self.check_sentence(error)
            if self.fresh is not None:
                with pytest.raises(type(error)):
                    getattr(self.fresh, name)(X)
        else:
            expected = getattr(self.fresh, name)(X)
            assert_array_equal(np.asarray(answer), np.asarray(expected))
            assert np.all(np.isfinite(np.asarray(answer, dtype=float)))
        assert self.state() == before

    def copy(self):
        """Go on with what comes out of a file or a pickle."""
        if self.fresh is None:
            return
        if self.random.rand() < 0.5:
            self.model = pickle.loads(pickle.dumps(self.model))
            return
        path = self.folder / "model.safetensors"
        try:
            self.model.save(path)
        except ValueError as error:
            self.check_sentence(error)
        else:
            self.model = load(path)

    @staticmethod
    def check_sentence(error):
        """What is said is meant for users, and not left over from inside."""
        text = str(error)
        assert text.strip()
        assert not [word for word in INTERNAL if word in text], text


def campaign(n_calls, seed, folder):
    """Calls to many estimators, some twenty to each."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(n_calls // 20):
            trial = Trial([seed, number], folder)
            for place in range(20):
                try:
                    trial.call()
                except BaseException as error:
                    error.add_note(f"seed {seed}, trial {number}, call {place}: {trial.model}")
                    raise


def test_some_calls(tmp_path):
    campaign(200, 0, tmp_path)


@pytest.mark.slow
def test_many_calls(tmp_path):
    campaign(20_000, 1, tmp_path)
