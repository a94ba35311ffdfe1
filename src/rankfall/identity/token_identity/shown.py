"""Declare the tables `token_identity` and `model_token_identity` and what is shown of them: how often a hidden state, of a network or of a
real model, identifies the token of its sentence that it came from."""

from dataclasses import replace

from rankfall.annotations import DataFrame, Series
from rankfall.report.headlines import Headline, at_last, plain
from rankfall.report.lines import SHARE
from rankfall.report.page.chart import MODEL, NETWORK, Chart, Level
from rankfall.report.page.question import ask_range, percent
from rankfall.report.published_numbers import read_published
from rankfall.report.schema import MODEL_COLUMNS, Table, declare_table
from rankfall.report.selection import select

KEY = "layer map loss trained_layer candidates distance"


def columns() -> Table:
    return declare_table(
        "token_identity",
        "each cell, layer, map, loss, layer trained on, set of candidates and distance",
        """
        layer int?: whose states are mapped; 0 is what enters the first layer; null: position
        map text: naive: the state itself; linear; mlp: linear and one hidden layer; position: knows only the place of the token
        loss text?: what the map was trained on: cosine or l2; null: not trained
        trained_layer int?: layer whose states the map was trained on; null: not trained
        candidates text: sentence; distinct: words that occur once in it; vocabulary: all, at the same place
        distance text: of the nearest neighbour: cosine or l2
        rate float?: share of tested tokens whose own embedding is the nearest; one of m nearest counts 1/m; null: see rate_reason
        low float?: lower end of the 95% interval of the rate over sentences (Wilson, clustered)
        high float?: its upper end
        chance float?: rate of a guess among the candidates
        tokens int: tokens that the rate is over
        sentences int: sentences that these are of: tested, neither trained nor validated on
        rate_reason text: why there is no rate; else empty
        epoch int?: of the training that validated best; 0: least squares; null: not trained
        """,
        key=KEY,
    )


NEAREST = {"candidates": "sentence", "distance": "cosine"}  # default candidates and distance
LINEAR = {"map": "linear", "loss": "cosine"}
ASKED = {**LINEAR, **NEAREST}


def is_own(table: DataFrame) -> Series:
    """Check whether a map is untrained or applied to the layer that it was trained on."""
    return (table.trained_layer.isna() | (table.trained_layer == table.layer)).astype(bool)


HEADLINES = (
    Headline(
        "identity_rate",
        "tokens found again at the last layer",
        "share of the tokens whose last state a trained linear map leads back to their own embedding, nearest by cosine among the "
        "tokens of the sentence",
        ("layer", "map", "loss", "trained_layer", "candidates", "distance", "rate"),
        lambda table: at_last(select(table[is_own(table)], ASKED)),
        lambda rows: plain(rows, "rate", chance=rows.chance),
        first="trained",
        beside={"chance": "rate of a guess among the tokens of the sentence"},
        place=20,
    ),
)


CHARTS = (
    Chart(
        "identity",
        "Tokens found again, by layer",
        "A map leads each token's state back towards the embeddings: share of the tokens for which their own is then the nearest. Naive: "
        "without a map.",
        "layer",
        "rate",
        "layer",
        "share of the tokens found",
        choose=(*NETWORK, "map", "loss", "candidates", "distance"),
        start={"training": "converged", **ASKED},
        derive={"own": is_own},
        where={"own": True},
        within=SHARE,
        beside=(Level("chance", "chance"),),
        place=30,
    ),
)


SENTENCES = (
    ask_range(
        "Can a token still be found in the last layer?",
        "identity_rate",
        "a linear map finds most tokens in",
        percent,
        place=100,
    ),
)


def model_columns() -> Table:
    return declare_table(
        "model_token_identity",
        "each model, phase, seed, variant, layer, map, loss, layer trained on, set of candidates and distance",
        MODEL_COLUMNS,
        """
        variant text: what is left of every block: see docs/models.md
        """,
        columns().own,
        key=f"model revision phase text length dtype variant seed {KEY}",
        cells=False,
    )


MODEL_CHARTS = (
    replace(
        CHARTS[0],
        name="model_identity",
        title="Tokens of real models found again, by layer",
        text="The same for real models, as they are (transformer) or with parts left out.",
        line="variant",
        choose=(*MODEL, "map", "loss", "candidates", "distance"),
        start=ASKED,
        place=40,
    ),
)


DATA = ["identity/token_identity/model_published.csv"]
MODEL_PUBLISHED = read_published(__file__, "model_published.csv")
