"""Declare what is shown of `model_token_identity`: charts and published numbers.

The figure: identifiability of tokens from the hidden states of a Hugging Face model, layer by layer, one column per model and variant.
"""

from typing import Literal

from rankfall.annotations import DataFrame, Read
from rankfall.errors import RankfallError
from rankfall.identity.token_identity.figure import (
    describe_finding,
    mean_rates,
    measured_candidates,
    panels,
    select_own,
)
from rankfall.identity.token_identity.shown import ASKED, is_own
from rankfall.report.account import describe_missing, seeds
from rankfall.report.coincide import coincide
from rankfall.report.lines import SHARE, say_cut
from rankfall.report.looks import label
from rankfall.report.model_names import name_measurements
from rankfall.report.page.chart import MODEL, Chart, Level
from rankfall.report.published_numbers import read_published
from rankfall.report.style import Picture

CHARTS = (
    Chart(
        "model_identity",
        "Tokens of real models found again, by layer",
        "The same for real models, as they are (transformer) or with parts left out.",
        "layer",
        "rate",
        "layer",
        "share of the tokens found",
        line="variant",
        choose=(*MODEL, "map", "loss", "candidates", "distance"),
        start=ASKED,
        derive={"own": is_own},
        where={"own": True},
        within=SHARE,
        beside=(Level("chance", "chance"),),
        place=40,
    ),
)


DATA = ["identity/model_token_identity/published.csv"]
PUBLISHED = read_published(__file__)


TABLES = ["model_token_identity"]
NETWORK = ["model", "phase", "variant"]
POINT = ["network", "layer", "map", "loss", "trained_layer", "candidates", "distance"]


def figure(
    read: Read,
    *,
    models: list[str] = [],
    phases: list[str] = [],
    variants: list[str] = [],
    candidates: list[Literal["sentence", "distinct", "vocabulary"]] = ["sentence", "distinct", "vocabulary"],
    transfer: bool = True,
) -> Picture:
    """Draw the rates by layer.

    `models`, `phases`, `variants`: which ones, by default all. `transfer`: maps of one layer on the states of another.
    """
    table = read("model_token_identity")
    for column, wanted in (("model", models), ("phase", phases), ("variant", variants)):
        table = table[table[column].isin(wanted)] if wanted else table
    if table.empty:
        raise RankfallError("figure model_token_identity: the table has no row with these models, phases and variants")
    found = measured_candidates(table, candidates, "model_token_identity")
    table = table.assign(
        network=[f"{name}\n{label(variant)}" for name, variant in zip(name_measurements(table), table.variant)]
    )
    transfer = transfer and bool((table.trained_layer.notna() & (table.trained_layer != table.layer)).any())
    names = list(table.sort_values(NETWORK, kind="stable").network.unique())
    drawn = select_own(
        table[(table["map"] != "position") & (table.distance == "cosine") & table.candidates.isin(found)]
    )
    figure = panels(intervals(table), names, found, transfer, estimator="median", errorbar=("pi", 100))
    drawn_at_random = table[table.phase == "init"]
    seeded = (
        f" (of initialised models, means over {seeds(drawn_at_random, ['network'])})" if len(drawn_at_random) else ""
    )
    return Picture(
        figure,
        f"Share of tokens whose embedding is the nearest to their mapped state, on at least {int(table.sentences.min())} "
        "sentences that no map "
        f"was trained on; bands are 95% intervals over sentences{seeded}".replace("\n", ", ")
        + ("; below, linear maps of one layer on the states of another. " if transfer else ". ")
        + "".join(
            (
                describe_finding(table, names, found[-1]),
                say_cut(figure),
                coincide(drawn, "map", "layer", "rate", ["network", "candidates"], span=1.0),
                describe_missing(table, "rate", ["network"]),
            )
        ).replace("\n", ", "),
        mean_rates(table.assign(network=table.network.str.replace("\n", ", "))),
    )


def intervals(table: DataFrame) -> DataFrame:
    """Return three rows per point, means over seeds: the rate and both ends of its interval. Their median and range are drawn."""
    from pandas import concat

    means = table.groupby(POINT, dropna=False)[["rate", "low", "high", "chance"]].mean().reset_index()
    return concat([means, *(means.assign(rate=means[end]) for end in ("low", "high"))])
