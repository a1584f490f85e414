"""A progress bar on a terminal or in a notebook, or nothing."""

from __future__ import annotations

from types import TracebackType
from typing import Any


class Progress:
    """Bar over the iterations of a fit, with the objective behind it; silent if not `shown`."""

    def __init__(self, total: int, description: str, shown: bool) -> None:
        self._bar: Any = None
        if shown:
            from tqdm.auto import tqdm

            self._bar = tqdm(total=total, desc=description, unit="it")

    def update(self, objective: float) -> None:
        """One more iteration, with this objective."""
        if self._bar is not None:
            self._bar.set_postfix_str(f"objective {objective:.8g}", refresh=False)
            self._bar.update()

    def skip(self, n: int) -> None:
        """Iterations that were done at an earlier time."""
        if self._bar is not None:
            self._bar.update(n)

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.close()
