"""Declare the table `probe_trained` and what is shown of it: trained networks on the probe, beside theory and random weights."""

from rankfall.annotations import DataFrame
from rankfall.report.headlines import Headline, plain
from rankfall.report.lines import SHARE
from rankfall.report.page.chart import NETWORK, Chart, Level
from rankfall.report.published_numbers import read_published
from rankfall.report.schema import Table, declare_table


def columns() -> Table:
    return declare_table(
        "probe_trained",
        "each cell and length",
        """
        length int: n: how often the one symbol is put in
        asked int: places with a learned answer: no more than the longest trained length
        beyond bool: whether the sequence is longer than any trained on
        theory_rows int?: distinct rows at most, whatever the weights are; null where theory is undecided
        argument text: what decides: a word of position/theory.py, explained in docs/position.md
        untrained_rows int: distinct rows of this architecture at random weights, the most of all draws
        trained_rows int: distinct rows of the trained network
        accuracy float nan: share of the places asked that are right
        chance float: accuracy of the best single answer for all places
        ceiling float: accuracy of the best answers with the trained network's distinct rows
        loss float [nats] nan: cross entropy, mean over the places asked
        passes bool: whether accuracy is enough (0.95 unless the measure says otherwise)
        agreement text: agree; training falls short; more than theory allows; theory undecided
        agreement_reason text: what failed, or keeps theory from deciding; empty where all agree
        """,
        key="length",
    )


def longest_trained(table: DataFrame) -> DataFrame:
    known = table[~table.beyond.astype(bool)]
    return known[known["length"] == known.groupby("key")["length"].transform("max")]


HEADLINES = (
    Headline(
        "probe_accuracy",
        "places named after training",
        "share of the places of equal tokens that the trained network names, at the longest trained length",
        ("length", "beyond", "accuracy"),
        longest_trained,
        lambda rows: plain(rows, "accuracy", chance=rows.chance, ceiling=rows.ceiling),
        first="only trained",
        beside={
            "chance": "accuracy of the best single answer for all places",
            "ceiling": "of the best answers with the trained network's distinct rows",
        },
        place=20,
    ),
)


CHARTS = (
    Chart(
        "probe_trained",
        "Places named after training, by length",
        "Accuracy of naming the places of equal tokens; beyond the trained lengths a network has to extrapolate.",
        "length",
        "accuracy",
        "tokens",
        "accuracy",
        choose=NETWORK,
        within=SHARE,
        beside=(Level("chance", "chance"), Level("the most that its outputs allow", "ceiling", shared=False)),
        place=20,
    ),
)


DATA = ["position/probe_trained/published.csv"]
PUBLISHED = read_published(__file__)
