"""Wonterfact, the package of the paper's authors, as a peer: called as its documentation says."""

from __future__ import annotations

import importlib.util
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray


def installed() -> bool:
    """Whether there is a Wonterfact to compare with."""
    return importlib.util.find_spec("wonterfact") is not None


class Peer:
    """EM on our model, with shapes 1 and rate 1e-3, from given activations and atoms.

    Parameters
    ----------
    X : (J, I) array
    activations : (J, K) array, in the unit of X
    atoms : (2, K, I) array
    real : bool
        Real (M = ∞) or integer (M = 1) likelihood.
    update_type : {"regular", "parabolic"}
    """

    def __init__(
        self,
        X: NDArray,
        activations: NDArray,
        atoms: NDArray,
        *,
        real: bool,
        update_type: str,
        **root_options: Any,
    ) -> None:
        import wonterfact as wtf

        self._atoms = wtf.LeafDirichlet(
            name="atoms",
            index_id="kis",
            norm_axis=(1, 2),
            tensor=np.ascontiguousarray(atoms.transpose(1, 2, 0)),
            prior_shape=1,
        )
        self._activations = wtf.LeafGamma(
            name="activations",
            index_id="jk",
            tensor=activations.copy(),
            prior_shape=1,
            prior_rate=1e-3,
        )
        product = wtf.Multiplier(name="product", index_id="jis")
        product.new_parents(self._activations, self._atoms)
        observer = wtf.RealObserver(
            name="observer", index_id="ji", tensor=X.copy(), limit_skellam_update=real
        )
        product.new_child(observer)
        self._root = wtf.Root(
            name="root",
            verbose_iter=10**6,
            cost_computation_iter=10**6,
            stop_estim_threshold=0,
            seed=0,
            **root_options,
        )
        self._root.update_type = update_type
        observer.new_child(self._root)
        self._begin_at(activations, atoms)

    def _begin_at(self, activations: NDArray, atoms: NDArray) -> None:
        """Put the start values in place.

        The first iteration sets the leaves to what the priors say, whatever was given. So the
        values are written after it, and an iteration with frozen leaves passes them on.
        """
        leaves = (self._activations, self._atoms)
        self._root.estimate_param(n_iter=1)
        for leaf in leaves:
            leaf.update_period = 0
        self._activations.tensor[...] = activations
        self._atoms.tensor[...] = atoms.transpose(1, 2, 0)
        self._root.estimate_param(n_iter=1)
        for leaf in leaves:
            leaf.update_period = 1

    def iterate(self, n_iterations: int) -> float:
        """Do some iterations, and return the seconds they took."""
        start = time.perf_counter()
        self._root.estimate_param(n_iter=n_iterations)
        return time.perf_counter() - start

    def factors(self) -> tuple[NDArray, NDArray]:
        """Activations (J, K) and atoms (2, K, I) as they are now."""
        atoms = self._atoms.tensor.transpose(2, 0, 1)
        return self._activations.tensor.copy(), np.ascontiguousarray(atoms)
