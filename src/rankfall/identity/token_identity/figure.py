"""Identifiability of tokens from hidden states, layer by layer, one column per architecture."""

from typing import Any, Literal

from rankfall.annotations import Read
from rankfall.identity.token_identity.rates import describe_finding, mean_rates, measured_candidates, panels, select_own
from rankfall.report.account import account
from rankfall.report.coincide import coincide
from rankfall.report.lines import say_cut
from rankfall.report.looks import label
from rankfall.report.selection import choose, deepest
from rankfall.report.settings import differences
from rankfall.report.style import Picture

TABLES = ["token_identity"]


def token_identity(
    read: Read,
    *,
    task: str | None = None,
    training: str | None = None,
    architectures: list[str] = [],
    candidates: list[Literal["sentence", "distinct", "vocabulary"]] = ["sentence", "distinct", "vocabulary"],
    transfer: bool = True,
    where: dict[str, Any] = {},
) -> Picture:
    """Draw the rates of the deepest networks of one task and training, by default those with the most cells.

    `architectures`: by default all. `transfer`: maps of one layer on the states of another. `where`: only these cells, by any column.
    """
    asked = {"task": task, "training": training, "architecture": architectures}
    table, whole, (task, training) = choose(read("token_identity"), "token_identity", where, **asked)
    table = deepest(table, "token_identity", ["architecture"])
    there = sorted(str(name) for name in table.architecture.unique())
    names = [name for name in architectures or there if name in there]
    known = account(whole, table[table.candidates.isin(candidates)], ["architecture"], "rate")
    found = measured_candidates(table, candidates, "token_identity")
    transfer = transfer and bool((table.trained_layer.notna() & (table.trained_layer != table.layer)).any())
    table = table.assign(network=table.architecture)
    drawn = select_own(table[(table["map"] != "position") & table.candidates.isin(found)])
    figure = panels(table, names, found, transfer)
    return Picture(
        figure,
        f"Share of tokens whose embedding is the nearest to their mapped state, {label(training)} networks on {label(task)}, on sentences "
        "that no map was "
        f"trained on: means over {known.with_bands()}"
        + ("; below, linear maps of one layer on the states of another. " if transfer else ". ")
        + describe_finding(table, names, found[-1], differences(table, but=["depth"]))
        + say_cut(figure)
        + coincide(drawn[drawn.distance == "cosine"], "map", "layer", "rate", ["network", "candidates"], span=1.0)
        + known.left_out,
        mean_rates(table.drop(columns=["low", "high"], errors="ignore")),
    )
