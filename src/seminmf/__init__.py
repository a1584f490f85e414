"""Semi-nonnegative matrix factorization with Skellam likelihoods.

X ≈ activations · components, where X has signs and gaps, the activations are nonnegative and the
components are signed.

Names are imported when they are first used, so that ``import seminmf`` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import seminmf.datasets as datasets
    import seminmf.plot as plot
    import seminmf.report as report
    import seminmf.special as special
    import seminmf.stats as stats
    from seminmf._resampling.bootstrap import bootstrap
    from seminmf._resampling.consensus import consensus
    from seminmf.annotated import fit_anndata
    from seminmf.bayesian import BayesianSkellamSNMF
    from seminmf.divergence import skellam_divergence
    from seminmf.euclidean import EuclideanSNMF
    from seminmf.generate import sample_skellam_snmf
    from seminmf.imputer import SNMFImputer
    from seminmf.io import load
    from seminmf.prior_learning import PriorLearner
    from seminmf.selection import select_n_components
    from seminmf.skellam import SkellamSNMF
    from seminmf.tensor import BayesianSkellamSNTF, SkellamSNTF

    __version__: str

__all__ = [
    "BayesianSkellamSNMF",
    "BayesianSkellamSNTF",
    "EuclideanSNMF",
    "PriorLearner",
    "SNMFImputer",
    "SkellamSNMF",
    "SkellamSNTF",
    "__version__",
    "bootstrap",
    "consensus",
    "datasets",
    "fit_anndata",
    "load",
    "plot",
    "report",
    "sample_skellam_snmf",
    "select_n_components",
    "skellam_divergence",
    "special",
    "stats",
]

_MODULE_OF = {
    "BayesianSkellamSNMF": "seminmf.bayesian",
    "BayesianSkellamSNTF": "seminmf.tensor",
    "EuclideanSNMF": "seminmf.euclidean",
    "PriorLearner": "seminmf.prior_learning",
    "SNMFImputer": "seminmf.imputer",
    "SkellamSNMF": "seminmf.skellam",
    "SkellamSNTF": "seminmf.tensor",
    "bootstrap": "seminmf._resampling.bootstrap",
    "consensus": "seminmf._resampling.consensus",
    "fit_anndata": "seminmf.annotated",
    "load": "seminmf.io",
    "sample_skellam_snmf": "seminmf.generate",
    "select_n_components": "seminmf.selection",
    "skellam_divergence": "seminmf.divergence",
}
_SUBMODULES = frozenset({"datasets", "plot", "report", "special", "stats"})


def __getattr__(name: str) -> Any:
    """Import a public name on first use (PEP 562)."""
    if name in _MODULE_OF:
        value = getattr(import_module(_MODULE_OF[name]), name)
    elif name in _SUBMODULES:
        value = import_module(f"seminmf.{name}")
    elif name == "__version__":
        value = _installed_version()
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value  # so that the next access does not come here
    return value


def __dir__() -> list[str]:
    return __all__


def _installed_version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("seminmf")
    except PackageNotFoundError:  # a source tree on the path, never installed
        return "0+unknown"
