"""SkellamSNTF and BayesianSkellamSNTF: semi-nonnegative tensor models, written as strings."""

from __future__ import annotations

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, check_random_state

from ._algorithms import tensor_em, tensor_vb
from ._algorithms.tensor import TensorProblem
from ._estimators import validation as check
from ._estimators.posteriors import Interval
from ._estimators.tensor import BaseSNTF
from ._estimators.tensor_posterior import draw, intervals


class SkellamSNTF(BaseSNTF):
    """Semi-nonnegative tensor factorization by any model that can be written, point estimates.

    Parameters
    ----------
    model : str or dict of str
        The model, such as "nr,jr,kr->njk", as in `numpy.einsum`: operands are factors, named by
        their letters or before a colon ("A:nr"), and the same name is the same factor. Terms are
        joined by + and −. The first letter after "->" counts the samples. A letter may be a
        difference, "(t-d)". A dict has a string for each of several observed tensors, by their
        names.
    n_components : int or dict of int, default=2
        Sizes of the letters that are not of the data: a number if there is one, or by letter.
    signed : str, sequence of str or None, default=None
        The factors that have signs. All others are at least 0. None will do where X is at least 0
        or a term is subtracted; () says that noise alone makes X negative.
    unit : str or None, default=None
        The factor that has the unit of X, while others sum to 1. None is the first with the letter
        of the samples.
    likelihood : {"real", "integer"}, or dict, default="real"
        "real" for any numbers, "integer" for counts and differences of counts. This and the two
        that follow may be dicts by the names of tensors.
    dispersion : "auto" or float, or dict, default="auto"
        φ, in the unit of X: the factors add φ times what adds up in a cell to its variance. "auto"
        is small against the noise. 0.0 is the paper's M = ∞.
    noise : "auto", "same", a letter or None, or dict, default="auto"
        Noise that no factor explains: a level for each value of a letter of the data, the same for
        all, or none. "auto" is the second letter of the data, and None for integers and for a
        dispersion of 0.0.
    activation_shape_prior, activation_rate_prior : float, array-like or dict, default=1.0, "auto"
        Gamma prior of free factors: numbers, or arrays of a factor's shape by its name. Rates are
        for values in units of the dispersion where that is above 0. "auto" is a price of 0.3 for an
        amount in units of the noise, and 1e-3 without noise.
    atom_shape_prior : float, array-like or dict, default=1.0
        Shape of the Dirichlet prior of factors that sum to 1.
    solver : {"newton", "em"}, default="newton"
        "newton" takes Newton steps as well, for all factors of a letter of the data at once, after
        the first iterations of EM. It falls back to EM where the model has no such rows, with
        sample weights, for data that are sparse, large or not in memory, and for factors that are
        frozen in part or have a prior shape other than 1.
    acceleration : {"squarem", "parabolic", None}, default="squarem"
        How either is extrapolated. An iteration is then a cycle of three or four passes over the
        data; the objective never falls.
    n_init : int or "auto", default="auto"
        Number of random starts, of which the best is kept. "auto" is 5 where noise is sought, and
        else 1.
    max_iter : int, default=3000
        Most iterations of a run.
    tol : float, default=1e-4
        A run has converged when the objective gained less than `tol` times its size over the last
        20 iterations. 0 never stops before `max_iter`.
    check_integer : bool, default=True
        Whether likelihood "integer" refuses data that are no integers.
    random_state : int, RandomState or None, default=None
        Source of the start values. The same seed gives the same bits, whatever `n_jobs`.
    n_jobs : int or None, default=None
        Threads. None and -1 are all cores; small problems use one in any case.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    factors_ : dict
        Factors by their names, with the axes as written. Where X has labels they are Series,
        DataFrames or, from three axes on and if xarray is imported, xarrays.
    parts_ : dict of ndarray
        The same as (2, *sizes), positive and negative part, or (1, *sizes) without a sign.
    activations_ : ndarray
        The factor that has the unit of X, of the first term.
    table_weights_ : dict of ndarray
        Where terms or tensors have the same unit: what each multiplies it by, (n_terms, *latent
        cells), by the name of the unit.
    r2_ : float
        R² of the observed cells, each tensor in units of its mean square.
    r2_drop_ : dict of ndarray
        By latent letter: what R² falls by when one of its values is taken out.
    component_stability_ : dict of ndarray
        By latent letter: mean cosine of each of its values with its match in the other starts; NaN
        for a single start. For CP it is that of two terms as tensors.
    solver_ : {"newton", "em"}
        The solver that was used.
    objective_ : float
        Log-posterior at the end, constants dropped.
    objectives_ : ndarray of shape (n_iter_ + 1,)
        Its values from the start to the end.
    n_iter_ : int
        Iterations of the best run.
    converged_ : bool
        Whether that run met the rule of `tol`.
    stop_reason_ : {"tolerance", "max_iter", "interrupted"}
        Why that run ended.
    dispersion_ : float or dict
        The dispersion, in the unit of X. With `dispersion=0.0` it is that of the residuals.
    noise_ : ndarray or dict
        Standard deviation of the noise for each value of its letter; empty if there is none.

    Notes
    -----
    Which factors sum to 1, and over which axes, follows from the string; the page on tensors in the
    documentation has the rule.

    Examples
    --------
    >>> import numpy as np
    >>> from seminmf import SkellamSNTF
    >>> rng = np.random.RandomState(0)
    >>> trials, courses = rng.gamma(1, size=(40, 2)), rng.gamma(1, size=(30, 2))
    >>> maps = rng.normal(size=(6, 2))
    >>> X = np.einsum("nr,cr,tr->nct", trials, maps, courses) + 0.1 * rng.normal(size=(40, 6, 30))
    >>> X[rng.random_sample(X.shape) < 0.1] = np.nan
    >>> model = SkellamSNTF("nr,cr,tr->nct", 2, signed="cr", random_state=0).fit(X)
    >>> {name: factor.shape for name, factor in model.factors_.items()}
    {'nr': (40, 2), 'cr': (6, 2), 'tr': (30, 2)}
    >>> found = np.corrcoef(maps.T, model.factors_["cr"].T)[:2, 2:]
    >>> bool((found.max(axis=1) > 0.99).all())
    True
    >>> bool(np.isclose(model.noise_.mean(), 0.1, rtol=0.05))
    True
    """

    _variational = False
    _algorithm = tensor_em
    _description = "EM"
    _trace = ("objectives_", "objective_")


class BayesianSkellamSNTF(BaseSNTF):
    """Semi-nonnegative tensor factorization with a posterior for all factors, of a mean field.

    Parameters
    ----------
    model : str or dict of str
        The model, such as "nr,jr,kr->njk"; see `SkellamSNTF`, as for all that follows.
    n_components : int or dict of int, default=2
        Sizes of the letters that are not of the data.
    signed : str, sequence of str or None, default=None
        The factors that have signs.
    unit : str or None, default=None
        The factor that has the unit of X.
    likelihood : {"real", "integer"}, or dict, default="real"
        "real" for any numbers, "integer" for counts and differences of counts.
    dispersion : "auto" or float, or dict, default="auto"
        φ, in the unit of X. With 0.0 the posterior depends on the unit of X.
    noise : "auto", "same", a letter or None, or dict, default="auto"
        Noise that no factor explains; it is found before the posterior, and taken as known by it.
    activation_shape_prior, activation_rate_prior : float, array-like or dict, default=1.0, "auto"
        Gamma prior of free factors; rates must be above 0.
    atom_shape_prior : float, array-like or dict, default=1.0
        Shape of the Dirichlet prior of factors that sum to 1.
    solver : {"newton", "em"}, default="newton"
        How the noise is sought: with Newton steps at the end, or without. The posterior is found by
        VBEM in either case.
    acceleration : {"squarem", "parabolic", None}, default="squarem"
        How VBEM is extrapolated; the bound never falls.
    n_init : int or "auto", default="auto"
        Number of random starts.
    max_iter : int, default=3000
        Most iterations of a run.
    tol : float, default=1e-4
        As for `SkellamSNTF`, of the bound.
    check_integer : bool, default=True
        Whether likelihood "integer" refuses data that are no integers.
    random_state : int, RandomState or None, default=None
        Source of the start values.
    n_jobs : int or None, default=None
        Threads.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    factors_, parts_, activations_, table_weights_ : dicts and ndarray
        Posterior means of the factors; as for `SkellamSNTF`.
    shapes_ : dict of ndarray
        Posterior shapes as (2, *sizes) or (1, *sizes): of gamma distributions for free factors, and
        of Dirichlet distributions for those that sum to 1.
    rates_ : dict of ndarray
        Posterior rates of free factors, in the unit of X.
    lower_bound_ : float
        Normalised evidence lower bound (ELBO).
    lower_bounds_ : ndarray of shape (n_iter_ + 1,)
        Its values from the start to the end.
    r2_, r2_drop_, component_stability_, n_iter_, converged_, stop_reason_, dispersion_, noise_
        As for `SkellamSNTF`.

    Notes
    -----
    Under a mean field all factors are independent, and intervals are too narrow.

    Examples
    --------
    >>> import numpy as np
    >>> from seminmf import BayesianSkellamSNTF
    >>> rng = np.random.RandomState(0)
    >>> rates = np.einsum("nr,jr,kr->njk", *(rng.gamma(1, size=(size, 2)) for size in (30, 8, 9)))
    >>> X = rng.poisson(5 * rates)
    >>> model = BayesianSkellamSNTF("nr,jr,kr->njk", 2, likelihood="integer", random_state=0).fit(X)
    >>> lower, upper = model.interval(0.9)["jr"]
    >>> bool((lower < model.factors_["jr"]).all() and (model.factors_["jr"] < upper).all())
    True
    """

    _variational = True
    _algorithm = tensor_vb
    _description = "VBEM"
    _trace = ("lower_bounds_", "lower_bound_")

    @property
    def shapes_(self) -> dict[str, NDArray]:
        """Posterior shapes of all factors."""
        check_is_fitted(self)
        model, state = self._fitted.model, self._fitted.state
        return {
            name: model.layout(name).unpack(state[model.names.index(name)])
            for name in model.plan.factors
        }

    @property
    def rates_(self) -> dict[str, NDArray]:
        """Posterior rates of free factors, in the unit of X."""
        parts = self.parts_
        roles = self._fitted.model.network.roles
        return {
            name: self.shapes_[name] / parts[name] for name, role in roles.items() if role.is_free
        }

    def sample(
        self, n: int = 1, random_state: int | RandomState | None = None
    ) -> dict[str, NDArray]:
        """Draw from the posterior.

        Parameters
        ----------
        n : int, default=1
            Number of draws.
        random_state : int, RandomState or None, default=None

        Returns
        -------
        dict of ndarray
            By the names of factors, (n, *sizes), in the unit of X.
        """
        check_is_fitted(self)
        check.check_count("n", n)
        random = check_random_state(random_state)
        draws = [draw(self._fitted, random) for _ in range(n)]
        return {name: np.array([one[name] for one in draws]) for name in draws[0]}

    def interval(
        self,
        level: float = 0.9,
        n_draws: int = 1000,
        random_state: int | RandomState | None = 0,
    ) -> dict[str, Interval]:
        """Credible intervals of all factors.

        Parameters
        ----------
        level : float, default=0.9
            Probability of each interval.
        n_draws : int, default=1000
            Draws of signed factors; those of others are not needed.
        random_state : int, RandomState or None, default=0

        Returns
        -------
        dict of Interval
            By the names of factors, each with `.lower` and `.upper`.
        """
        check_is_fitted(self)
        tails = check.check_level(level)
        check.check_count("n_draws", n_draws)
        return intervals(self._fitted, tails, n_draws, check_random_state(random_state))

    def _first(self, problem: TensorProblem, arrays: list[NDArray]) -> list[NDArray]:
        """Posteriors that would follow if the factors were expected counts."""
        return tensor_vb.state_from(problem, arrays)
