"""Small signed data sets: some come with the package, one is generated."""

from seminmf.datasets._bundled import load_ionosphere, load_segment, load_shuttle
from seminmf.datasets._generated import make_waveform

__all__ = ["load_ionosphere", "load_segment", "load_shuttle", "make_waveform"]
