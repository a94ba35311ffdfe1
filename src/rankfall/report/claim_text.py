"""Verdicts on claims as text: for a terminal, and as a page of the documentation."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rankfall.errors import RankfallError, nearest
from rankfall.report.claim import CONTRADICTED, HOLDS, IN_PART, UNDECIDED, VERDICTS

if TYPE_CHECKING:
    from pandas import DataFrame

MARKS = {HOLDS: "+", IN_PART: "~", CONTRADICTED: "x", UNDECIDED: "?"}
ORDER = (CONTRADICTED, IN_PART, HOLDS, UNDECIDED)
WIDTH = 140
HEAD = """# What has been said about depth, and does it hold?

`rankfall claims --docs` writes this page from the tables of `make run CONFIG=workflow/presets/claims.yaml`. A claim is a folder of
`src/rankfall/claims/`: what somebody says, where, and what of it was read; an experiment; and the rule that decides. Rules were committed
before the runs; some were then found to be badly posed and changed after numbers were seen (of equilibria under norms, query gradients,
score scales by mask, ALiBi's peak, causal products, value zeroing and bias to early items): `git log` of a folder says what and why.
Intervals are of 95% over seeds. To test a claim of your own, see [components](components.md).
"""


def count(table: DataFrame) -> str:
    return ", ".join(f"{one} {int((table.verdict == one).sum())}" for one in VERDICTS)


def as_lines(table: DataFrame) -> Iterator[str]:
    """A line or two a claim."""
    yield f"{len(table)} claims: {count(table)}"
    for one in table.itertuples():
        yield f"{MARKS[one.verdict]} {one.claim}: {one.verdict}. {one.says}"
        yield textwrap.indent(textwrap.fill(one.said, WIDTH), "    ")


def in_full(table: DataFrame, name: str) -> Iterator[str]:
    known = list(table.claim)
    if name not in known:
        near = nearest(name, known)
        raise RankfallError(
            f"{name!r} is no claim of this run"
            + (f"; did you mean {near!r}?" if near else f"; it has {', '.join(known)}")
        )
    (one,) = table[table.claim == name].itertuples()
    yield f"{one.claim}: {one.verdict}"
    for title, text in _parts(one):
        yield textwrap.fill(f"{title}: {text}", WIDTH, subsequent_indent="  ")


def _parts(one: object) -> Iterator[tuple[str, str]]:
    yield "claim", one.says  # type: ignore[attr-defined]
    yield "found", one.said  # type: ignore[attr-defined]
    if one.number == one.number and one.number is not None:  # type: ignore[attr-defined]
        span = "" if one.low == one.high else f" ({one.low:.4g} to {one.high:.4g})"  # type: ignore[attr-defined]
        yield "number", f"{one.number:.4g}{span}, {one.seeds} seeds"  # type: ignore[attr-defined]
    for title in ("wants", "threshold", "setting", "defects"):
        if getattr(one, title):
            yield (
                {"wants": "to decide it", "threshold": "counts as true if", "defects": "in the published code"}.get(
                    title, title
                ),
                getattr(one, title),
            )
    yield "source", f"{one.paper}, {one.link}; read: {one.seen}"  # type: ignore[attr-defined]


def as_page(table: DataFrame) -> str:
    """docs/claims.md."""
    parts = [HEAD, f"{len(table)} claims: {count(table)}.\n"]
    for verdict in ORDER:
        rows = table[table.verdict == verdict]
        if not len(rows):
            continue
        parts.append(f"## {verdict[0].upper()}{verdict[1:]}\n")
        for one in rows.itertuples():
            parts.append(f"### {one.claim.replace('_', ' ')}\n")
            parts.append(f"*{one.says}* [{one.paper}]({one.link}) (read: {one.seen})\n")
            parts += [f"{text}\n" for text in (one.said, one.wants and f"To decide it: {one.wants}") if text]
            parts.append(f"Measured: {one.setting} Rule: {one.threshold}\n")
            if one.defects:
                parts.append(f"In the published code: {one.defects}\n")
    return "\n".join(_wrap(part) for part in parts)


def _wrap(part: str) -> str:
    if part.startswith("#"):
        return part
    return "\n".join(textwrap.wrap(part, WIDTH, break_long_words=False, break_on_hyphens=False)) + "\n"
