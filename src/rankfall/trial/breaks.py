"""What a component must say in `BREAKS` is tried: measures that take networks apart would give numbers of another network than the one
that was trained.

A layer is taken apart as the block `attention` puts its parts together: so a block that does anything else with them says `blocks`, and so
does what reads or leaves something that earlier layers made. A block that calls its attention more than once has no weights of its own.
"""

from typing import Any

import torch
from torch import Tensor

from rankfall.nets.blocks.attention import Attention
from rankfall.nets.earlier import asks
from rankfall.trial.candidate import Candidate
from rankfall.trial.extremes import AGREE, difference

TAKEN_APART = ("attention", "mlp", "residual", "mlp_residual", "norm1", "norm2", "placement")
OF_ATTENTION = ("weights", "heads", "values")


def check_said(candidate: Candidate, *wanted: str, why: str) -> None:
    """Raise `Refused` where BREAKS lacks one of these."""
    said = candidate.facts.get("BREAKS", ())
    said = (said,) if isinstance(said, str) else tuple(said)
    if not set(wanted) <= set(said):
        whole = (*wanted, *(name for name in said if name not in wanted))
        what = f"{why}, and says BREAKS = {said!r}" if said else f"{why}, and does not say BREAKS"
        remedy = f"write BREAKS = {whole!r} at the top of its file, so that measures that would take its networks apart leave them out"
        raise candidate.refusal(what, remedy)


def check_earlier(candidate: Candidate, made: Any) -> None:
    """An attention, a block or a residual that asks for what earlier layers made."""
    if asks(made):
        check_said(candidate, "blocks", why="has layers that read what earlier ones made (`asks_earlier`)")


def check_block(candidate: Candidate, made: Any, x: Tensor) -> None:
    """`made`: a block around parts of the package; `x`: what it is given, (K, B, T, D) or wider"""
    calls: list[Any] = []
    hook = made.attention.register_forward_pre_hook(lambda *given: calls.append(given))
    with torch.no_grad():
        try:
            found: Any = candidate.call(made, "given states", x.clone())
        finally:
            hook.remove()
        if len(calls) != 1:
            times = f"calls its attention {len(calls)} times in a layer"
            check_said(candidate, "blocks", *OF_ATTENTION, why=times)
            return
        if hasattr(made, "widen"):
            check_said(candidate, "blocks", *OF_ATTENTION, why="passes on a wider state than vectors (`widen`)")
            return
        usual = Attention(**{name: getattr(made, name) for name in TAKEN_APART}, site="blocks.0")(x.clone())
    if found.shape != usual.shape or difference([found], [usual]) > AGREE:
        check_said(candidate, "blocks", why="does something else with its parts than the block `attention`")
