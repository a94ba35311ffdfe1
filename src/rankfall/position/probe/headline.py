"""Headline number: the positions distinguished at random weights."""

from rankfall.annotations import Series
from rankfall.report.cell_numbers import all_rows
from rankfall.report.headlines import Headline, OfParts, PartNumber
from rankfall.report.part_numbers import is_missing, parts_of


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
