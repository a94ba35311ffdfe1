"""How often a hidden state of a Hugging Face model still tells which token it came from, layer by layer, one column a model and variant."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from rankfall.errors import RankfallError
from rankfall.report.figures.models import short
from rankfall.report.figures.token_identity import MAP
from rankfall.report.rates import CANDIDATES, finding, panels
from rankfall.report.style import Picture

if TYPE_CHECKING:
    from pandas import DataFrame

TABLES = ["model_token_identity"]
NETWORK = ["model", "phase", "variant"]


def model_token_identity(
    read: "Callable[[str], DataFrame]",
    *,
    models: list[str] = [],
    phases: list[str] = [],
    variants: list[str] = [],
    candidates: list[str] = ["sentence", "distinct", "vocabulary"],
    transfer: bool = True,
) -> Picture:
    """`models`, `phases`, `variants`: which ones; default all. `transfer`: maps of one layer on the states of another."""
    table = read("model_token_identity")
    for column, wanted in (("model", models), ("phase", phases), ("variant", variants)):
        table = table[table[column].isin(wanted)] if wanted else table
    if table.empty:
        raise RankfallError("figure model_token_identity: its table has no such model, phase and variant")
    candidates = [name for name in CANDIDATES if name in candidates and (table.candidates == name).any()]
    networks = {
        f"{short(model)}, {phase}\n{variant}": over_seeds(part)
        for (model, phase, variant), part in table.groupby(NETWORK)
    }
    transfer = transfer and bool((table.trained_layer.notna() & (table.trained_layer != table.layer)).any())
    shown = candidates[-1]
    return Picture(
        panels(networks, candidates, transfer),
        f"Share of tokens whose embedding is the nearest to their mapped state, tested on at least "
        f"{int(table.sentences.min())} sentences that no map was trained on. Bands are 95% intervals over sentences (of cosine), "
        "of initialised models means over seeds. Maps are trained on the distance that they are asked by. "
        + (
            "Below: linear maps of one layer on the states of another, by cosine within the sentence. "
            if transfer
            else ""
        )
        + f"Last layer, by cosine among {CANDIDATES[shown]}: "
        + " ".join(finding(title.replace("\n", ", "), one, shown) for title, one in networks.items()),
    )


def over_seeds(table: "DataFrame") -> "DataFrame":
    """Means over seeds of rates and of both ends of their intervals."""
    return table.groupby(MAP, dropna=False)[["rate", "low", "high", "chance"]].mean().reset_index()
