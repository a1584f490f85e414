"""Pictures of fitted models, with matplotlib.

Every function takes the axes to draw on, or makes a new figure, and returns the axes. Nothing is
shown and no global state is touched: ``ax.figure.savefig("picture.png")`` writes the file.
"""

from ._activations import activations
from ._clusters import clusters
from ._components import components
from ._convergence import convergence
from ._factors import factors
from ._intervals import intervals
from ._reconstruction import reconstruction
from ._selection import selection

__all__ = [
    "activations",
    "clusters",
    "components",
    "convergence",
    "factors",
    "intervals",
    "reconstruction",
    "selection",
]
