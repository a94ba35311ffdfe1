"""The measure `claims`: every claim that the tables of a run can decide, with its verdict by its own rule (`rule.py` of its folder)."""

from dataclasses import asdict
from typing import Any

from rankfall.errors import RankfallError, suggest
from rankfall.measure.context import Context
from rankfall.report.claim import Claim, main_quantity
from rankfall.report.claim import claims as declared_claims
from rankfall.report.claim_text import count_verdicts
from rankfall.report.decision import Decision, Read
from rankfall.report.labels import many
from rankfall.report.page.question import TableQuestion
from rankfall.report.schema import Table, declare_table


def columns() -> Table:
    """Declare the table of claims with their verdicts."""
    return declare_table(
        "claims",
        "each claim of a paper",
        """
        claim text: its name
        says text: the statement
        paper text: who says it, where
        link text: the paper
        seen text: what of the source was read for this
        setting text: what is measured here
        threshold text: when the claim counts as true
        changed text: what of rule or experiment was changed after numbers were seen, and why; empty: nothing
        verdict text: holds; holds only in part (`said` says where not); contradicted; undecided
        said text: what was found, in a sentence
        extends text: where else the statement is true or not: masks, sizes, positions and the like that the bench adds to the source's
            setting; never part of the verdict; empty: nothing is added
        number float?: the number that decides; null: no single one does
        low float?: lower end of its 95% interval over seeds
        high float?: upper end of its 95% interval over seeds
        seeds int: seeds that the number is a mean of; 0 where there is none
        wants text: what would decide it; empty where it is decided
        shown text: the quantity of `evidence` that its figure shows; empty: it rests on other tables alone
        cells text: keys of the networks of this run that it rests on; empty: its experiment trains its own, or none
        published int: numbers of the source beside ours in the figure
        defects text: what is wrong in published code; empty: nothing was found
        study text: which module declares the claim
        """,
        key="claim",
        cells=False,
    )


NEEDS = "tables"
FINDS = ["claim"]
TABLES = ["evidence", "cells", "training", "residuals", "law", "orders", "probe", "probe_trained", "extrapolation", "influence",
          "cell_influence", "token_identity", "attention_identity", "attribution", "model_residuals", "model_law", "paths"]  # fmt: skip


def measure(context: Context, *, claims: list[str] = []) -> list[dict[str, Any]]:
    """Return the verdicts of `claims`, by default of all that the run has measured. Raise if a named claim is not measured."""
    by_name = {claim.name: claim for claim in declared_claims()}
    evidence = context.table("evidence")
    for name in () if evidence is None else sorted(set(evidence.claim) - set(by_name)):
        problem = f"the table evidence has rows of {name!r}, which is not a claim{suggest(name, list(by_name))}"
        raise RankfallError(
            f"{problem}\n  fix: correct the name in `evidence_row`, or write statement.yaml and rule.py in a folder of it"
        )
    rows = []
    for name in claims or by_name:
        if name not in by_name:
            raise RankfallError(
                f"claims: {name!r} is not a claim" + (suggest(name, by_name) or f"; known: {', '.join(by_name)}")
            )
        decision = decide(by_name[name], context.table)
        if decision is not None:
            rows.append(describe(by_name[name], decision, context.table))
        elif claims:
            raise RankfallError(
                f"claims: nothing in this run decides {name!r}; name its experiment among the measures: {by_name[name].table}"
            )
    return rows


def decide(claim: Claim, table: Read) -> Decision | None:
    """Decide a claim. Return None if a table that it reads is missing, or has no row of the claim."""

    def read(name: str) -> Any:
        if name not in claim.reads:
            raise RankfallError(f"claim {claim.name!r} reads table {name!r}, which its `reads` does not name")
        frame = table(name)
        return frame[frame.claim == claim.name] if name == "evidence" and frame is not None else frame

    for name in claim.reads:
        frame = read(name)
        if frame is None or not len(frame):
            return None
    return claim.decide(read)


def describe(claim: Claim, decision: Decision, table: Read) -> dict[str, Any]:
    """Return the row of a claim. Without other `cells`, it rests on all networks whose rows it reads."""
    evidence = table("evidence") if "evidence" in claim.reads else None
    shown = "" if evidence is None else main_quantity(evidence[evidence.claim == claim.name], claim)
    frames = [table(name) for name in claim.reads]
    cells = decision.cells or sorted({key for frame in frames if "key" in frame for key in frame.key})
    texts = {"extends": " ".join(map(str, decision.extends)), "cells": " ".join(cells), "shown": shown}
    return claim.texts() | asdict(decision) | texts | {"study": claim.table, "published": len(claim.published)}


def say_claims(read: Read) -> tuple[str, str]:
    """Write how many claims have each verdict."""
    table = read("claims")
    if table is None or not len(table):
        return "", ""
    return f"Of {many(len(table), 'claim')} of papers that this run has tested: {count_verdicts(table)}.", ""


SENTENCES = (TableQuestion("Does what has been said about depth hold?", say_claims, place=130, study="claims"),)
