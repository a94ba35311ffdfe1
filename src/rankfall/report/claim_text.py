"""Verdicts on claims as text for a terminal and as a page of the documentation."""

import textwrap
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from rankfall.annotations import DataFrame, Series
from rankfall.errors import RankfallError, suggest
from rankfall.report.claim import claims
from rankfall.report.decision import CONTRADICTED, HOLDS, IN_PART, UNDECIDED, VERDICTS
from rankfall.report.labels import many
from rankfall.report.part_numbers import is_missing

MARKS = {HOLDS: "+", IN_PART: "~", CONTRADICTED: "x", UNDECIDED: "?"}
ORDER = (CONTRADICTED, IN_PART, HOLDS, UNDECIDED)
WIDTH = 140  # letters of a line
TITLES = {
    "extends": "beyond the source's setting",
    "wants": "to decide it",
    "threshold": "counts as true if",
    "changed": "changed after numbers were seen",
    "setting": "setting",
    "defects": "in the published code",
    "cells": "networks of this run",
}
DECIDED = ["claim", "verdict", "said", "extends", "wants"]  # what a run adds to the declaration of a claim
HEAD = """# What has been said about depth, and does it hold?

These are the verdicts of `make run CONFIG=workflow/presets/claims.yaml`. `rankfall claims --docs docs/claims.csv` keeps them for this
page. A claim is a folder of `studies/claims/`: what somebody says, where, and what of it was read; an experiment; and the rule
that decides. The verdict is about the source's own setting, as far as it can be run here: many sources train large models, and
"Measured" says what stands for them. "Extends to" and "does not extend to" say what becomes of the statement in settings that the
experiment adds, and change no verdict. Rules were committed before the runs; claims whose rule was changed after numbers say so, and
why. Intervals are of 95% over seeds. The command beside a claim prints the rows that its verdict rests on, a number and a seed each.
The page of the run has them too, with a chart, and `results/claims/figures` the figure that `rankfall claims NAME` names. To test a
claim of your own, see [claim](components/claim.md).
"""


def count_verdicts(table: DataFrame) -> str:
    """Return the number of claims with each verdict, as "holds 3, holds only in part 1, ..."."""
    return ", ".join(f"{verdict} {int((table.verdict == verdict).sum())}" for verdict in VERDICTS)


def as_lines(table: DataFrame) -> Iterator[str]:
    """Yield a short text for each claim."""
    yield f"{many(len(table), 'claim')}: {count_verdicts(table)}"
    for row in table.itertuples():
        yield f"{MARKS[row.verdict]} {row.claim}: {row.verdict}. {row.says}"
        yield textwrap.indent(textwrap.fill(f"{row.said} {row.extends}", WIDTH), "    ")


def in_full(table: DataFrame, name: str) -> Iterator[str]:
    """Yield all that the table says of a claim."""
    row = row_of_claim(table, name)
    yield f"{row.claim}: {row.verdict}"
    number = ""
    if not is_missing(row.number):
        span = "" if is_missing(row.low) or row.low == row.high else f" ({row.low:.4g} to {row.high:.4g})"
        number = f"{row.number:.4g}{span}" + f", {many(row.seeds, 'seed')}" * bool(row.seeds)
    parts = {"claim": row.says, "found": row.said, "number": number} | {
        title: row[key] for key, title in TITLES.items()
    }
    for title, text in (parts | {"source": f"{row.paper}, {row.link}; read: {row.seen}"}).items():
        if text:
            yield textwrap.fill(f"{title}: {text}", WIDTH, subsequent_indent="  ")


def row_of_claim(table: DataFrame, name: str) -> Series:
    """Return the row of a claim; raise an error if the run does not have it."""
    names = list(table.claim)
    if name not in names:
        raise RankfallError(
            f"{name!r} is not a claim of this run" + (suggest(name, names) or f"; it has {', '.join(names)}")
        )
    return table.iloc[names.index(name)]


def page_of_verdicts(path: Path) -> str:
    """Return the page of claims, from the verdicts in a CSV file and the declarations of claims."""
    import pandas as pd

    verdicts = pd.read_csv(path, keep_default_na=False)
    declared = [claim.texts() for claim in claims()]
    return as_page(verdicts.merge(pd.DataFrame(declared), on="claim", how="left", validate="one_to_one"))


def as_page(table: DataFrame) -> str:
    """Return the text of the page of claims."""
    parts = [HEAD, f"{many(len(table), 'claim')}: {count_verdicts(table)}.\n"]
    for verdict in ORDER:
        rows = table[table.verdict == verdict]
        parts += [f"## {verdict[0].upper()}{verdict[1:]}\n"] * bool(len(rows))
        for row in rows.itertuples():
            texts = [
                f"### {row.claim.replace('_', ' ')}",
                f"*{row.says}* [{row.paper}]({row.link}) (read: {row.seen})",
                row.said,
                row.extends,
                row.wants and f"To decide it: {row.wants}",
                f"Measured: {row.setting} Rule: {row.threshold} Rows: `rankfall claims {row.claim} --rows`",
                row.changed and f"Changed after numbers were seen: {row.changed}",
                row.defects and f"In the published code: {row.defects}",
            ]
            parts += [f"{text}\n" for text in texts if text]
    fill = partial(textwrap.fill, width=WIDTH, break_long_words=False, break_on_hyphens=False)
    return "\n".join(part if part.startswith("#") else f"{fill(part)}\n" for part in parts)
