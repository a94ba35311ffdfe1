"""Compare what a component declares, or shows with its defaults, with what it shows with its own options.

BREAKS and PROVIDES tell measures how they may take a network apart, and fields in IGNORES are no part of a cell: with a wrong fact, numbers
would be of another network than the one that was trained.
"""

from inspect import isclass

from rankfall.trial.candidate import Candidate
from rankfall.trial.learn import JUDGED, LEARN


def check_declared(candidate: Candidate) -> None:
    """Raise `Refused` if a fact allows more than a call of the component shows."""
    kind, found = candidate.kind, candidate.found
    if kind not in LEARN or kind == "task" or (kind in ("normaliser", "residual") and not isclass(found)):
        return
    try:
        shown = LEARN[kind](found, candidate.component.options)
    except Exception:  # at these sizes; at those of the network it runs
        return
    breaks, provides, ignores = (declared(candidate, fact) for fact in ("BREAKS", "PROVIDES", "IGNORES"))
    if lacking := [name for name in shown.get("BREAKS", ()) if name not in breaks]:
        said = f"says BREAKS = {breaks!r}" if breaks else "does not say BREAKS"
        what = f"makes networks of which measures cannot have the whole by {' and '.join(lacking)}, and {said}"
        remedy = f"write BREAKS = {(*dict.fromkeys((*lacking, *breaks)),)!r} at the top of its file, so that such measures leave them out"
        raise candidate.refusal(what, remedy)
    judged = JUDGED.get(kind, set())
    if wrong := [name for name in provides if name in judged and name not in shown["PROVIDES"]]:
        what = f"says PROVIDES = {provides!r}, but lacks methods for {wrong[0]}, or they do not give its output"
        remedy = (
            f"mend them, or leave {wrong[0]!r} out, so that measures that use it are refused before anything is trained"
        )
        raise candidate.refusal(what, remedy)
    if read := [name for name in ignores if name not in shown.get("IGNORES", ignores)]:
        what = f"reads its {read[0]} with these options, and IGNORES has it (declared, or learned from its defaults)"
        raise candidate.refusal(what, f"write IGNORES without {read[0]!r} at the top of its file")


def declared(candidate: Candidate, fact: str) -> tuple[str, ...]:
    names = candidate.facts.get(fact, ())
    return (names,) if isinstance(names, str) else tuple(names)
