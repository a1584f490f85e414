"""Signed data sets: some come with the package, one is generated, some are in a folder of yours."""

from seminmf.datasets._bundesliga import load_bundesliga
from seminmf.datasets._bundled import load_ionosphere, load_segment, load_shuttle
from seminmf.datasets._generated import make_waveform
from seminmf.datasets._jester import load_jester
from seminmf.datasets._waveform import fetch_waveform

__all__ = [
    "fetch_waveform",
    "load_bundesliga",
    "load_ionosphere",
    "load_jester",
    "load_segment",
    "load_shuttle",
    "make_waveform",
]
