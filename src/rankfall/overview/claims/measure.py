"""The measure `claims`: every claim that the tables of a run can decide, with its verdict by its own rule (`rule.py` of its folder)."""

from dataclasses import asdict
from typing import Any

from rankfall.errors import RankfallError, suggest
from rankfall.measure.context import Context
from rankfall.report.claim import SEEN, Claim, main_quantity
from rankfall.report.claim import claims as declared_claims
from rankfall.report.decision import Decision, Read

TABLE = "claims"
NEEDS = "tables"
FINDS = ["claim"]
TABLES = ["evidence", "cells", "training", "residuals", "law", "orders", "probe", "probe_trained", "extrapolation", "influence",
          "cell_influence", "token_identity", "attention_identity", "attribution", "model_residuals", "model_law", "paths"]  # fmt: skip


def claims(context: Context, *, claims: list[str] = []) -> list[dict[str, Any]]:
    """Return the verdicts of `claims`, by default of all that the run has measured. Raise if a named claim is not measured."""
    known = {claim.name: claim for claim in declared_claims()}
    for name in claims:
        if name not in known:
            raise RankfallError(
                f"claims: {name!r} is not a claim" + (suggest(name, list(known)) or f"; known: {', '.join(known)}")
            )
    rows = []
    for claim in known.values():
        if claims and claim.name not in claims:
            continue
        found = decide(claim, context.table)
        if found is not None:
            rows.append(describe(claim, found, context.table))
        elif claims:
            raise RankfallError(
                f"claims: nothing in this run decides {claim.name!r}; name its experiment among the measures: {claim.table}"
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


def describe(claim: Claim, found: Decision, table: Read) -> dict[str, Any]:
    names = ("says", "paper", "link", "setting", "threshold", "changed", "defects")
    about = {name: getattr(claim, name) for name in names}
    evidence = table("evidence") if "evidence" in claim.reads else None
    shown = "" if evidence is None else main_quantity(evidence[evidence.claim == claim.name], claim)
    return (
        {"claim": claim.name, "study": claim.table, "published": len(claim.published), "shown": shown}
        | about
        | {"seen": ", ".join(SEEN[word] for word in claim.seen)}
        | asdict(found)
        | {"extends": " ".join(map(str, found.extends))}
        | {"cells": " ".join(found.cells or cells_of(claim, table))}
    )


def cells_of(claim: Claim, table: Read) -> list[str]:
    """Return the keys of the networks whose rows a claim reads."""
    frames = [table(name) for name in claim.reads]
    return sorted({key for frame in frames if "key" in frame for key in frame.key})
