"""Small signed data sets that come with the package."""

from seminmf.datasets._bundled import load_ionosphere

__all__ = ["load_ionosphere"]
