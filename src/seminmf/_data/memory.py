"""How much memory there is."""

from __future__ import annotations

import math


def available_memory() -> float:
    """Bytes that may be had: what files are cached in counts, for it is given back."""
    try:
        with open("/proc/meminfo") as file:
            lines = dict(line.split(":", 1) for line in file)
        return 1024 * float(lines["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError):  # not on this system
        return math.inf
