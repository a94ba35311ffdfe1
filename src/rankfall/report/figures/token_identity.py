"""How often a hidden state still tells which token it came from, layer by layer, one column an architecture."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rankfall.report.rates import CANDIDATES, finding, panels
from rankfall.report.selection import among, finished, left_out, one_a_seed, one_of
from rankfall.report.style import Picture

if TYPE_CHECKING:
    from pandas import DataFrame

TABLES = ["token_identity"]
MAP = ["layer", "map", "loss", "trained_layer", "candidates", "distance"]


def token_identity(
    read: "Callable[[str], DataFrame]",
    *,
    task: str | None = None,
    training: str | None = None,
    architectures: list[str] = [],
    candidates: list[str] = ["sentence", "distinct", "vocabulary"],
    transfer: bool = True,
    where: dict[str, Any] = {},
) -> Picture:
    """The architectures' cells of one training at their greatest depth: all there are of the task and training that most cells have,
    unless named. `transfer`: maps of one layer on the states of another. `where`: only these cells, by any column."""
    whole = finished(read("token_identity"), "token_identity", where)
    table, task = one_of(whole, "token_identity", "task", task)
    table, training = one_of(table, "token_identity", "training", training)
    table = among(table, "token_identity", "architecture", architectures)
    table = table[table.depth == table.groupby("architecture").depth.transform("max")]
    one_a_seed(table, "token_identity", ["architecture"])
    names = architectures or sorted(str(name) for name in table.architecture.unique())
    candidates = [name for name in CANDIDATES if name in candidates and (table.candidates == name).any()]
    networks = {name: over_seeds(table[table.architecture == name]) for name in names}
    transfer = transfer and bool((table.trained_layer.notna() & (table.trained_layer != table.layer)).any())
    shown = candidates[-1]
    return Picture(
        panels(networks, candidates, transfer),
        f"Share of tokens whose embedding is the nearest to their mapped state, {training} networks on {task}, tested on "
        f"{int(table.sentences.max())} sentences a seed that no map was trained on. Lines are means over {table.seed.nunique()} seeds, "
        "bands one standard deviation over seeds (of cosine). Maps are trained on the distance that they are asked by. "
        + (
            "Below: linear maps of one layer on the states of another, by cosine within the sentence. "
            if transfer
            else ""
        )
        + left_out(whole, table)
        + f"Last layer, by cosine among {CANDIDATES[shown]}: "
        + " ".join(finding(name, one, shown) for name, one in networks.items()),
    )


def over_seeds(table: "DataFrame") -> "DataFrame":
    """Mean over seeds and one standard deviation on both sides."""
    found = table.groupby(MAP, dropna=False).agg(
        middle=("rate", "mean"), deviation=("rate", "std"), chance=("chance", "mean")
    )
    found = found.reset_index().rename(columns={"middle": "rate"})
    spread = found.deviation.fillna(0.0)
    return found.assign(low=found.rate - spread, high=found.rate + spread)
