"""Which algorithm finds the maximum a posteriori."""

from __future__ import annotations

from . import em, newton
from .acceleration import accelerate
from .loop import Algorithm
from .problem import Problem


def choose_algorithm(
    solver: str, acceleration: str | None, problem: Problem
) -> tuple[str, Algorithm]:
    """Name and algorithm: Newton's method where it was asked for and can be used, or else EM."""
    if solver == "newton" and newton.suits(problem):
        return "Newton", newton
    return "EM", accelerate(em, acceleration)
