"""Numbers and names as people read them."""

from __future__ import annotations

import math

NOTHING = "–"
_MINUS = "−"


def number(value: float, digits: int = 3) -> str:
    """So many digits that count; a dash for what is no number."""
    value = float(value)
    if math.isnan(value):
        return NOTHING
    if math.isinf(value):
        return "∞" if value > 0 else f"{_MINUS}∞"
    if value == 0:
        return "0"
    if 1e-4 <= abs(value) < 1e6:
        decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
        text = f"{value:,.{decimals}f}"
    else:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        text = f"{mantissa}e{int(exponent)}"
    return text.replace("-", _MINUS)


def percent(share: float) -> str:
    """A share in percent."""
    if not math.isfinite(share):
        return NOTHING
    if share == 0:
        return "0%"
    return "<0.1%" if 0 < share < 0.0005 else f"{share:.1%}"


def ratio(value: float) -> str:
    """A number without unit, of which thousandths do not matter."""
    return f"{value:.3f}".replace("-", _MINUS) if math.isfinite(value) else NOTHING


def count(n: int, thing: str = "") -> str:
    """A number of things, with their plural."""
    if not thing:
        return f"{n:,}"
    return f"{n:,} {thing}" if n == 1 else f"{n:,} {thing}s"


def shortened(name: str, most: int) -> str:
    """A name that has room: names that begin alike may differ at the end, so the middle goes."""
    if len(name) <= most:
        return name
    end = (most - 1) // 2
    return f"{name[: most - 1 - end].rstrip()}…{name[-end:].lstrip()}"
