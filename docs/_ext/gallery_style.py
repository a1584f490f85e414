"""The look of the gallery's pictures, which the examples need not know of."""

from pathlib import Path

STYLE = Path(__file__).parent.parent / "gallery.mplstyle"


def use(gallery_conf: dict, fname: str) -> None:
    """Before each example: sphinx-gallery has reset matplotlib."""
    import matplotlib.pyplot as plt

    plt.style.use(STYLE)
