"""Check what a component declares: BREAKS, without which measures would give numbers of another network than the one that was trained,
and PROVIDES, which measures use when networks are trained.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from rankfall.nets.blocks.attention import Attention
from rankfall.nets.earlier import asks
from rankfall.trial.candidate import Candidate
from rankfall.trial.independence import AGREE, difference

BLOCK_PARTS = ("attention", "mlp", "residual", "mlp_residual", "norm1", "norm2", "placement")
ATTENTION_MAPS = ("weights", "heads", "values")
METHODS = {
    "weights": ("weights",),
    "heads": ("heads", "contexts", "emit"),
    "values": ("value", "output", "maps"),
    "bias by offset": ("bias",),
    "factors by offset": ("factors",),
}
ROW_SUMS = {"one": 1.0, "normaliser": 1.0, "zero": 0.0}  # by ROWS; an attention is tried with softmax


def declared(candidate: Candidate, fact: str) -> tuple[str, ...]:
    names = candidate.facts.get(fact, ())
    return (names,) if isinstance(names, str) else tuple(names)


def require_breaks(candidate: Candidate, *wanted: str, why: str) -> None:
    """Raise `Refused` if BREAKS lacks one of these."""
    names = declared(candidate, "BREAKS")
    if not set(wanted) <= set(names):
        whole = tuple(dict.fromkeys((*wanted, *names)))
        what = f"{why}, and says BREAKS = {names!r}" if names else f"{why}, and does not say BREAKS"
        remedy = f"write BREAKS = {whole!r} at the top of its file, so that measures that would take its networks apart leave them out"
        raise candidate.refusal(what, remedy)


def check_earlier(candidate: Candidate, made: Any) -> None:
    """Raise `Refused` if an attention, a block or a residual reads what earlier layers made, and does not say so."""
    if asks(made):
        require_breaks(candidate, "blocks", why="has layers that read what earlier ones made (`asks_earlier`)")


def check_block(candidate: Candidate, made: Any, x: Tensor) -> None:
    """Raise `Refused` if a block does not put its parts together as the block `attention` does, and does not say so. `x`: its input."""
    names, why = find_breaks(made, x, lambda state: candidate.call(made, "given states", state))
    if names:
        require_breaks(candidate, *names, why=why)


def find_breaks(made: Any, x: Tensor, call: Callable[[Tensor], Any]) -> tuple[tuple[str, ...], str]:
    """Return what of a network a block breaks, and why. `x`: its input (K, B, T, D) or wider; `call`: the block itself, perhaps timed."""
    calls: list[Any] = []
    hook = made.attention.register_forward_pre_hook(lambda *given: calls.append(given))
    with torch.no_grad():
        try:
            got = call(x.clone())
        finally:
            hook.remove()
        if len(calls) != 1:
            return ("blocks", *ATTENTION_MAPS), f"calls its attention {len(calls)} times in a layer"
        if hasattr(made, "widen"):
            return ("blocks", *ATTENTION_MAPS), "passes on a wider state than vectors (`widen`)"
        usual = Attention(**{name: getattr(made, name) for name in BLOCK_PARTS}, site="blocks.0")(x.clone())
    if got.shape != usual.shape or difference([got], [usual]) > AGREE:
        return ("blocks",), "does something else with its parts than the block `attention`"
    return (), ""


def check_methods(candidate: Candidate, made: Any) -> None:
    """Raise `Refused` if a component lacks a method of something that it provides."""
    provides = declared(candidate, "PROVIDES")
    for what in provides:
        for name in METHODS.get(what, ()):
            if not hasattr(made, name):
                raise candidate.refusal(
                    f"says PROVIDES = {provides!r} and has no `{name}`",
                    f"write it, or leave {what!r} out, so that measures that use it are refused before anything is trained",
                )


def check_attention(candidate: Candidate, net: Any, x: Tensor) -> None:
    """Raise `Refused` if the weights of an attention are not those that it mixes states x (K, B, T, D) with: by the sums of their rows,
    by what it gives to dropout, and by heads whose sum is what it returns."""
    check_methods(candidate, net)
    provides, dropped = declared(candidate, "PROVIDES"), list[Tensor]()
    members, samples, tokens, _ = x.shape

    def drop(value: Tensor, site: str) -> Tensor:
        dropped.append(value)
        return value

    if "weights" not in provides:
        return
    with torch.no_grad():
        weights: Any = candidate.call(net.weights, "given states", x.clone())
        shape = tuple(weights.shape) if isinstance(weights, Tensor) else ()
        if len(shape) != 5 or (*shape[:2], *shape[3:]) != (members, samples, tokens, tokens):
            raise candidate.refusal(
                f"`weights` returns {shape or f'a {type(weights).__name__}'}",
                f"it must return ({members}, {samples}, H, {tokens}, {tokens})",
            )
        output = candidate.call(net, "given states", x.clone(), drop=drop)
        total = ROW_SUMS.get(str(candidate.facts.get("ROWS")))
        if total is not None and (off := float((weights.sum(-1) - total).abs().max())) > AGREE * tokens:
            what = f"says that rows of its weights sum to {total:g}, and they are off by {off:.1e}"
            raise candidate.refusal(what, "mend `weights`, or ROWS")
        if any(value.shape == weights.shape and difference([value], [weights]) > AGREE for value in dropped):
            what = "mixes with other weights than those of `weights`"
            raise candidate.refusal(what, "let `forward` and `weights` compute them by one function")
        if "heads" in provides:
            contexts: Any = candidate.call(net.contexts, "given weights and states", weights, x.clone())
            heads = [net.emit(contexts[:, :, h], h) for h in range(shape[2])]
            bias = net.emit(torch.zeros_like(contexts[:, :, 0]), 0)  # which each head has in full
            if difference([sum(heads) - (shape[2] - 1) * bias], [output]) > AGREE:
                what = "returns something else than the sum of its heads"
                raise candidate.refusal(what, "it must be that of `emit(context, head)`, with the output bias once")
