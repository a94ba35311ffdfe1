"""Declare what is shown of `probe`: headline numbers, charts, sentences and published numbers."""

from rankfall.annotations import Series
from rankfall.report.cell_numbers import all_rows
from rankfall.report.headlines import Headline, OfParts, PartNumber
from rankfall.report.page.chart import COMPONENTS, Chart
from rankfall.report.page.question import Read, TableQuestion
from rankfall.report.part_numbers import is_missing, parts_of
from rankfall.report.published_numbers import read_published


def share_of_places(one: Series) -> PartNumber:
    number, theory = (
        None if is_missing(value) else value / one.tokens for value in (one.untrained_rows, one.theory_rows)
    )
    return PartNumber(
        number, f"{one.tokens} tokens, {one.draws} draws", beside={"chance": 1 / one.tokens, "ceiling": theory}
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
    every = int((table.untrained_rows == table.tokens).sum())
    never = int(((table.untrained_rows == 1) & (table.theory_rows == 1).fillna(False)).sum())
    return (
        f"Given equal tokens, {every} of {len(table)} combinations of components give every place an output of its own; {never} give "
        "all the same whatever the weights.",
        "",
    )


SENTENCES = (TableQuestion("Which attention can tell places apart?", say_places, place=80),)


DATA = ["position/probe/published.csv"]
PUBLISHED = read_published(__file__)
