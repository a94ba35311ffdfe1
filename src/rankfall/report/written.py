"""Formatting of numbers for readers, with fixed decimals, in which a number that is not zero never looks like zero."""

import re
from math import copysign, inf, nextafter

from rankfall.report.lines import FLOOR

AT_FLOOR = "floor"
LARGE = 1e4  # numbers from here on are written without decimals


def write_float(value: float, digits: int, beside: float = 0.0) -> str:
    """Write a number with `digits` decimals, or without decimals from 10,000 on. 0.125 becomes 0.13, as in the page's script. A number that
    would look like zero is written with a power of ten, 2.0e-6. `beside`: the mean of which it is the deviation, which may be large."""
    if value != value:
        return "nan"
    digits = 0 if max(abs(value), abs(beside)) >= LARGE else digits
    whole = abs(value) >= 2**52  # has no half, and its neighbour is another whole number
    text = f"{value if whole else nextafter(value, copysign(inf, value)):,.{digits}f}"
    if text.strip("-0."):
        return text
    return re.sub(r"e-0*", "e-", f"{value:.1e}") if value else text.removeprefix("-")


def write_residual(value: float, digits: int = 3, noise: float = 0.0) -> str:
    """Write a relative residual, as `floor` if it is below the resolution of float64 or rounding noise in all samples (`noise`: the share
    of samples)."""
    return AT_FLOOR if noise == 1 or value <= FLOOR else write_float(value, digits)
