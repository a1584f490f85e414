"""What all pictures share: colours that colour-blind eyes tell apart (Okabe and Ito), and files."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"
SKY, AMBER, PINK = "#56B4E9", "#E69F00", "#CC79A7"
BLACK, GREY = "#000000", "#8C8C8C"


def png(figure: Figure) -> bytes:
    """A figure as the content of a PNG file."""
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=120)
    return buffer.getvalue()
