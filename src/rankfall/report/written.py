"""Write a number for people: with so many decimals, and never as zero what is not zero."""

import re
from math import copysign, inf, nextafter

from rankfall.report.lines import FLOOR

AT_FLOOR = "floor"
LARGE = 1e4  # from here on decimals say nothing


def write_float(value: float, digits: int, beside: float = 0.0) -> str:
    """Write a number with `digits` decimals: 0.125 is 0.13, as in the page's script; none from 10,000 on. What decimals would make a zero
    is written with its power of ten, 2.0e-6. `beside`: the number that it is the deviation of, whose decimals it has."""
    if value != value:
        return "nan"
    digits = 0 if max(abs(value), abs(beside)) >= LARGE else digits
    text = f"{nextafter(value, copysign(inf, value)):,.{digits}f}"
    if text.strip("-0."):
        return text
    return re.sub(r"e-0*", "e-", f"{value:.1e}") if value else text.removeprefix("-")


def write_residual(value: float, digits: int = 3, noise: float = 0.0) -> str:
    """Write a relative residual. `floor`: it is below what float64 resolves, or rounding noise in all samples (`noise`: their share)."""
    return AT_FLOOR if noise == 1 or value <= FLOOR else write_float(value, digits)
