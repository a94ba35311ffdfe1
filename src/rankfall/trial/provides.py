"""What a component says in `PROVIDES` is tried: measures use it when networks are trained, and a missing name would be found then.

The weights of an attention must be those that it mixes with, as far as that shows: in their rows, in what it gives to dropout, and in heads
whose sum is what it returns.
"""

from typing import Any

import torch
from torch import Tensor

from rankfall.trial.candidate import Candidate
from rankfall.trial.extremes import AGREE, difference

NAMES = {
    "weights": ("weights",),
    "heads": ("heads", "contexts", "emit"),
    "values": ("value", "output", "maps"),
    "bias by offset": ("bias",),
    "factors by offset": ("factors",),
}
SUMS = {"one": 1.0, "normaliser": 1.0, "zero": 0.0}  # of rows; an attention is tried with softmax


def provisions_of(candidate: Candidate) -> tuple[str, ...]:
    said = candidate.facts.get("PROVIDES", ())
    return (said,) if isinstance(said, str) else tuple(said)


def check_names(candidate: Candidate, made: Any) -> None:
    """Raise `Refused` where something is missing that it says it has."""
    for what in provisions_of(candidate):
        for name in NAMES.get(what, ()):
            if not hasattr(made, name):
                raise candidate.refusal(
                    f"says PROVIDES = {provisions_of(candidate)!r} and has no `{name}`",
                    f"write it, or leave {what!r} out, so that measures that use it are refused before anything is trained",
                )


def check_attention(candidate: Candidate, net: Any, x: Tensor) -> None:
    """`net`: the attention; `x`: states (K, B, T, D)"""
    check_names(candidate, net)
    said, given = provisions_of(candidate), list[Tensor]()
    members, samples, tokens, _ = x.shape

    def drop(value: Tensor, site: str) -> Tensor:
        given.append(value)
        return value

    if "weights" not in said:
        return
    with torch.no_grad():
        weights: Any = candidate.call(net.weights, "given states", x.clone())
        shape = tuple(weights.shape) if isinstance(weights, Tensor) else ()
        if len(shape) != 5 or (*shape[:2], *shape[3:]) != (members, samples, tokens, tokens):
            described = shape or f"a {type(weights).__name__}"
            raise candidate.refusal(
                f"`weights` returns {described}", f"it must return ({members}, {samples}, H, {tokens}, {tokens})"
            )
        found = candidate.call(net, "given states", x.clone(), drop=drop)
        total = SUMS.get(str(candidate.facts.get("ROWS")))
        if total is not None and (off := float((weights.sum(-1) - total).abs().max())) > AGREE * tokens:
            raise candidate.refusal(
                f"says that rows of its weights sum to {total:g}, and they are off by {off:.1e}",
                "mend `weights`, or ROWS",
            )
        for value in given:
            if value.shape == weights.shape and difference([value], [weights]) > AGREE:
                raise candidate.refusal(
                    "mixes with other weights than those of `weights`",
                    "let `forward` and `weights` compute them by one function",
                )
        if "heads" in said:
            contexts: Any = candidate.call(net.contexts, "given weights and states", weights, x.clone())
            heads = [net.emit(contexts[:, :, h], h) for h in range(shape[2])]
            bias = net.emit(torch.zeros_like(contexts[:, :, 0]), 0)  # which each head has in full
            if difference([sum(heads) - (shape[2] - 1) * bias], [found]) > AGREE:
                raise candidate.refusal(
                    "returns something else than the sum of its heads",
                    "it must be that of `emit(context, head)`, with the output bias once",
                )
