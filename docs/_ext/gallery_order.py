"""The order of the gallery: what shows most comes first, how-tos last."""

from pathlib import Path

FIRST = [
    "plot_gene_expression.py",
    "plot_fund_styles.py",
    "plot_sound.py",
    "plot_digits.py",
    "plot_inpainting.py",
    "plot_ratings.py",
    "plot_football.py",
    "plot_source_apportionment.py",
    "plot_radar.py",
    "plot_nonnegative.py",
]
LAST = [
    "plot_intervals.py",
    "plot_prior_learner.py",
    "plot_pipeline.py",
    "plot_dask_and_sparse.py",
    "plot_from_nmf.py",
]


class Order:
    """Sort key of sphinx-gallery: what is in neither list stands between them, by name."""

    def __init__(self, src_dir: str) -> None:
        self.folder = src_dir

    def __call__(self, file: str) -> tuple[int, int, str]:
        name = Path(file).name
        if name in FIRST:
            return 0, FIRST.index(name), name
        return (2, LAST.index(name), name) if name in LAST else (1, 0, name)

    def __repr__(self) -> str:
        return f"<Order of {self.folder}>"
