"""Declare the table `probe` and what is shown of it: which attention can distinguish equal tokens, by theory and at random weights."""

from rankfall.annotations import Series
from rankfall.report.headlines import Headline, OfParts, PartNumber, all_rows
from rankfall.report.page.chart import COMPONENTS, Chart
from rankfall.report.page.question import Read, TableQuestion
from rankfall.report.part_numbers import is_missing, parts_of
from rankfall.report.published_numbers import read_published
from rankfall.report.schema import Table, declare_table


def columns() -> Table:
    return declare_table(
        "probe",
        "each attention, normaliser, position, mask, kind of sentinels, depth and number of tokens",
        """
        attention text: how tokens are mixed
        normaliser text?: what turns scores into attention weights; null: nothing reads it
        position text: how places enter the network
        mask text?: which pairs of places may attend; null: nothing reads it
        sentinels text: extra tokens that carry no input; only the other tokens are counted
        depth int: number of blocks
        tokens int: n: how often the one symbol is put in
        theory_rows int?: distinct rows at most, whatever the weights are; null where theory is undecided
        argument text: what decides: a word of position/theory.py, explained in docs/position.md
        argument_reason text: the argument in a sentence; or what keeps theory from deciding
        untrained_rows int?: distinct rows at random weights, the most of all draws; null: not measured (see reason)
        untrained_least int?: the fewest of all draws
        draws int: networks at random weights; more where the first show fewer rows than theory allows
        widest_equal float?: largest difference of rows that count as equal, relative to the largest entry
        narrowest_distinct float?: smallest difference of rows that count as distinct, relative; null: there are none
        agreement text: agree; fewer rows than theory allows; more rows than theory allows; theory undecided; not measured
        reason text: why theory and measurement differ, or one is missing; empty where they agree
        """,
        key="attention normaliser position mask sentinels depth tokens",
        cells=False,
    )


def share_of_places(row: Series) -> PartNumber:
    number, theory = (
        None if is_missing(value) else value / row.tokens for value in (row.untrained_rows, row.theory_rows)
    )
    return PartNumber(
        number, f"{row.tokens} tokens, {row.draws} draws", beside={"chance": 1 / row.tokens, "ceiling": theory}
    )


HEADLINES = (
    Headline(
        "probe_rows",
        "places told apart at random weights",
        "of a sequence of n equal tokens, how many different outputs its places have, over n; the most of all draws of weights",
        ("untrained_rows", "tokens"),
        all_rows,
        share_of_places,
        beside={
            "chance": "1/n, where all places give the same",
            "ceiling": "what theory allows whatever the weights are",
        },
        parts=OfParts(parts_of, "tokens"),
        place=10,
    ),
)


CHARTS = (
    Chart(
        "probe",
        "Places that attention can tell apart",
        "Equal tokens go in: how many different vectors come out, at random weights. Where it is 1, no training can name a place.",
        **COMPONENTS,
        choose=("attention", "mask", "sentinels", "tokens", "depth"),
        start={"attention": "multihead", "mask": "none", "sentinels": "none"},
        value="untrained_rows",
        value_title="different vectors",
        within=(1.0, None),
        better="high",
        place=10,
    ),
)


def say_places(read: Read) -> tuple[str, str]:
    table = read("probe")
    if table is None or not table.untrained_rows.notna().any():
        return "", ""
    table = table[table.untrained_rows.notna()]
    all_apart = int((table.untrained_rows == table.tokens).sum())
    none_apart = int(((table.untrained_rows == 1) & (table.theory_rows == 1).fillna(False)).sum())
    return (
        f"Given equal tokens, {all_apart} of {len(table)} combinations of components give every place an output of its own; "
        f"{none_apart} give all the same whatever the weights.",
        "",
    )


SENTENCES = (TableQuestion("Which attention can tell places apart?", say_places, place=80),)


DATA = ["position/probe/published.csv"]
PUBLISHED = read_published(__file__)
