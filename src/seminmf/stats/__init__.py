"""The Skellam and the diffnomial distribution, in the manner of `scipy.stats`.

``skellam`` is the distribution of a difference of two Poisson variables, and ``diffnomial`` that of
the Poisson sources behind such a difference once it is known: what the multinomial distribution is
to a sum of Poisson variables.
"""

from ._diffnomial import diffnomial
from ._skellam import skellam

__all__ = ["diffnomial", "skellam"]
