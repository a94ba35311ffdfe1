"""Declare the table `model_token_identity` and what is shown of it: how often a hidden state of a real model identifies the token of its
sentence that it came from.

The figure: identifiability of tokens from the hidden states of a Hugging Face model, layer by layer, one column per model and variant.
"""

from dataclasses import replace
from typing import Literal

from rankfall.annotations import DataFrame, Read
from rankfall.errors import RankfallError
from rankfall.identity.token_identity.figure import draw_rates, measured_candidates
from rankfall.identity.token_identity.shown import ASKED, TOKEN_COLUMNS, TOKEN_KEY
from rankfall.identity.token_identity.shown import CHARTS as OF_CELLS
from rankfall.report.captions import describe_lines, describe_missing
from rankfall.report.looks import label
from rankfall.report.model_names import name_measurements
from rankfall.report.page.chart import MODEL
from rankfall.report.published_numbers import read_published
from rankfall.report.schema import MODEL_COLUMNS, Table, declare_table
from rankfall.report.style import Picture


def columns() -> Table:
    return declare_table(
        "model_token_identity",
        "a model x phase x seed x variant x layer x map x loss x layer trained on x candidates x distance",
        MODEL_COLUMNS,
        """
        variant text: what is left of every block: see docs/models.md
        """,
        TOKEN_COLUMNS,
        key=f"model revision phase text length dtype variant seed {TOKEN_KEY}",
        cells=False,
    )


CHARTS = (
    replace(
        OF_CELLS[0],
        name="model_identity",
        title="Tokens of real models found again, by layer",
        text="The same for real models, as they are (transformer) or with parts left out.",
        line="variant",
        choose=(*MODEL, "map", "loss", "candidates", "distance"),
        start=ASKED,
        place=40,
    ),
)


DATA = ["identity/model_token_identity/published.csv"]
PUBLISHED = read_published(__file__)


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
    names = [f"{name}, {label(variant)}" for name, variant in zip(name_measurements(table), table.variant)]
    table = table.assign(network=names)
    random = table[table.phase == "init"]
    seeded = f" Of initialised models: {describe_lines(random, ['network'], band='')}." if len(random) else ""
    return draw_rates(
        table,
        list(table.sort_values(NETWORK, kind="stable").network.unique()),
        measured_candidates(table, candidates, "model_token_identity"),
        transfer,
        f"on at least {int(table.sentences.min())} sentences that no map was trained on; bands are 95% intervals over sentences.{seeded}",
        describe_missing(table, ["network"], "rate"),
        drawn=intervals(table),
        estimator="median",
        errorbar=("pi", 100),
    )


def intervals(table: DataFrame) -> DataFrame:
    """Return three rows per point, means over seeds: the rate and both ends of its interval. Their median and range are drawn."""
    from pandas import concat

    means = table.groupby(POINT, dropna=False)[["rate", "low", "high", "chance"]].mean().reset_index()
    return concat([means, *(means.assign(rate=means[end]) for end in ("low", "high"))])
