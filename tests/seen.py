"""What a figure shows, for tests: the numbers behind its lines, by colour."""

from matplotlib.axes import Axes
from matplotlib.colors import to_hex


def line(panel: Axes, colour: str) -> list[float]:
    """Heights of the one line of this colour that has points; seaborn also keeps empty ones, for its legend."""
    (found,) = [
        one
        for one in panel.lines
        if len(one.get_xdata()) and one.get_linestyle() != "None" and to_hex(one.get_color()) == colour.lower()
    ]
    return [float(value) for value in found.get_ydata()]
