"""Concentration of attention weights by layer, by length, or by any column of the grid."""

from typing import Any, Literal

from rankfall.annotations import Read
from rankfall.rank.attention_weights.rows import of_layer
from rankfall.rank.states.figure import draw_means
from rankfall.report.style import Picture

TABLES = ["attention_weights"]
TITLES = {
    "entropy": "entropy, in nats",
    "inverse_participation": "sum of squared shares",
    "largest_share": "largest share of a row",
    "first_share": "share of the first token",
}


def attention_weights(
    read: Read,
    *,
    quantity: Literal["entropy", "inverse_participation", "largest_share", "first_share"] = "entropy",
    left_out: Literal["nothing", "first token"] = "nothing",
    lines: list[str] = ["architecture"],
    panels: list[str] = ["task"],
    x: str = "layer",
    where: dict[str, Any] = {},
) -> Picture:
    """Draw means over heads and rows. Options are those of figure `states`."""
    table = read("attention_weights")
    what = TITLES[quantity] + ("" if left_out == "nothing" else " without the first token")
    chosen = {"quantity": quantity, "left_out": left_out}
    return draw_means(table[of_layer(table)], "attention_weights", chosen, what, lines, panels, x, where, "")
