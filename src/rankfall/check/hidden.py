"""Tokens that attention hides, such as padding: find them, and find out whether they reach other tokens past the mask."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from rankfall.check.attention import masked_scores, weights_of
from rankfall.check.equal import change_entry
from rankfall.check.heads import MASKED
from rankfall.streams.arguments import in_float64
from rankfall.streams.axes import differs
from rankfall.streams.editor import PassResult, run_through
from rankfall.streams.examine import Examined
from rankfall.streams.flow import Edits, Flow
from rankfall.streams.mixing import FURTHER, PLACES, MixingTrial, TokenMixing, directions, try_places
from rankfall.streams.record import tensors_in

OTHERS, OUTPUT = "other tokens", "the output"


class Weighed:
    """Collect, in a pass, the tokens that have weight in some row of some attention of a stream. seen (S, T)"""

    def __init__(self, flow: Flow, samples: int, tokens: int) -> None:
        self.flow, self.shape, self.seen = flow, (samples, tokens), torch.zeros(samples, tokens, dtype=torch.bool)
        self.calls = 0

    def attend(self, number: int, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        result = in_float64(func, args, kwargs)
        samples, tokens = self.shape
        if self.flow.branches[number].mixes:
            weights = weights_of(func, args, kwargs, result)
            if weights.shape[-2:] == (tokens, tokens) and weights.dim() > 2 and weights.numel() % samples == 0:
                # a row that may read nothing weighs all tokens alike where masks are large finite numbers
                scores = masked_scores(func, args, kwargs)
                visible = weights > 0 if scores is None else (weights > 0) & (scores > MASKED)
                self.seen |= visible.reshape(samples, -1, tokens).any(1)  # (S, H * T, T) -> (S, T)
                self.calls += 1
        return result

    @property
    def hidden(self) -> Tensor:
        """Return which tokens (S, T) have no weight in any row of any attention; none without attention over the tokens."""
        return ~self.seen if self.calls else torch.zeros_like(self.seen)


def hidden_tokens(examined: Examined, flow: Flow, samples: int, tokens: int) -> Tensor:
    """Return the tokens (S, T) that no attention of the stream reads."""
    weighed = Weighed(flow, samples, tokens)
    if flow.attends:
        run_through(examined.model, examined.arguments, flow, Edits(attend=weighed.attend))
    return weighed.hidden


def ignore_hidden_rows(examined: Examined, flow: Flow, hidden: Tensor) -> Flow:
    """Return the stream with its branches causal if they are so for all rows but those of hidden tokens.

    A row that may read nothing, as padding on the left of a causal model, reads all tokens alike where masks are large finite numbers.
    """
    layout = flow.layout
    if not bool(hidden.any()) or not any(branch.backwards for branch in flow.branches):
        return flow
    if len(layout.samples) != 1 or len(layout.tokens) != 1 or layout.groups > 1 or layout.streams:
        return flow
    trial = MixingTrial(flow, {branch.number: TokenMixing() for branch in flow.branches})
    run_through(examined.model, examined.arguments, flow, Edits(edit=trial.keep, join=trial.keep_part))
    try_places(examined.model, examined.arguments, flow, trial, (*PLACES, *FURTHER))
    sample_first = layout.samples[0] < layout.tokens[0]
    branches = []
    for branch in flow.branches:
        result = trial.results[branch.number]
        spots = {
            (changed, affected)
            for changed, affected in result.spots
            if not hidden[affected if sample_first else affected[::-1]]
        }
        later, earlier, after, _ = directions(replace(result, spots=spots), layout)
        causal = replace(branch, forwards=True, backwards=False, after=after, ahead=0)
        branches.append(causal if later and not earlier else branch)
    return replace(flow, branches=tuple(branches))


def reached_by_hidden(
    examined: Examined, flow: Flow, hidden: Tensor, states: list[Tensor], output: list[Tensor]
) -> tuple[int, str] | None:
    """Change the hidden tokens of the first state. Return the first layer at which other tokens change, and what changes; or None.

    The last layer stands for the output. Nothing is known if the weights of attention depend on the hidden tokens, as in sparse attention.
    """
    samples, tokens = hidden.shape
    only_last = bool(hidden[:, -1].all()) and not bool(hidden[:, :-1].any())  # no token may see itself
    if not bool(hidden.any()) or only_last or any(state.shape[:2] != hidden.shape for state in states):
        return None
    generator = torch.Generator().manual_seed(3)

    def change(rows: Tensor) -> Tensor:
        noise = torch.randn(rows.shape, generator=generator, dtype=torch.float64).to(rows)
        return torch.where(hidden[..., None], noise * rows.pow(2).mean().sqrt() - rows, rows)

    weighed = Weighed(flow, samples, tokens)
    edits = Edits(enter=lambda tensor: change_entry(flow, tensor, change), attend=weighed.attend)
    after: PassResult = run_through(examined.model, examined.arguments, flow, edits)
    if not torch.equal(weighed.hidden, hidden):
        return None
    for layer, (state, before) in enumerate(zip(after.states, states)):
        changes = differs(flow.layout.to_rows(state), before).any(-1)  # (S, T)
        if bool((changes & ~hidden).any()):
            return layer, OTHERS
    for (_, new), old in zip(tensors_in(after.output), output):
        if new.shape != old.shape or not new.is_floating_point() or new.dim() < 2:
            continue
        changes = differs(new, old)
        if flow.layout.samples == (1,) and new.dim() > 2 and len(new) != samples:  # (T, B, ...)
            changes = changes.transpose(0, 1)
        if len(changes) == samples and is_visible(changes, hidden):
            return flow.depth, OUTPUT
    return None


def is_visible(changes: Tensor, hidden: Tensor) -> bool:
    """Return whether an output (S, ...) changes elsewhere than at hidden tokens (S, T), along whichever axis holds the tokens.

    An axis may hold steps of several tokens, or several numbers for each token.
    """
    samples, tokens = hidden.shape
    along = []
    for axis in range(1, changes.dim()):
        size = changes.shape[axis]
        if size > 1 and (tokens % size == 0 or size % tokens == 0):
            steps = hidden.repeat_interleave(max(1, size // tokens), 1).view(samples, size, -1).any(-1)
            along.append(bool((changes.movedim(axis, 1).reshape(samples, size, -1).any(-1) & ~steps).any()))
    if not along and changes.dim() > 2:  # another number of tokens, as without registers: as many of them may change
        counts = changes.flatten(2).any(2).sum(1)  # (S,)
        return bool((counts > hidden.sum(1)).any())
    return all(along) if along else bool(changes.any())
