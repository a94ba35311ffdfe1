"""Find branches that mix up the rows of tokens: heads, windows or pictures that are split or joined in another order of axes.

Weights of attention become the identity, so that every token reads itself alone. In each pass one token of one sample is changed, and
after each addition the sum is that of the untouched pass but for this token. A branch must then change the row of this token.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from rankfall.check.attention import AttentionReader, BranchReads
from rankfall.check.passes import HeldStates
from rankfall.streams.axes import differs, entered
from rankfall.streams.examine import Examined
from rankfall.streams.flow import Branch, Flow
from rankfall.streams.record import PRODUCTS

FEWEST_TOKENS = 4
# A row that holds a smaller share of a token beside parts of others is mixed. A token fills its row, or half of it beside a zero unit.
PIECE = 0.3
ROW_READERS = PRODUCTS | {F.layer_norm, F.rms_norm}


def entry_in_pieces(examined: Examined, flow: Flow) -> bool:
    """Return whether one number of a picture or film changes several rows of the first state, and each in few of its numbers."""
    pictures = [x for x in examined.arguments.tensors() if x.dim() > 3 and x.is_floating_point()]
    # a depthwise map may act on features of the inputs
    if not pictures or any(flow.width in x.shape for x in pictures):
        return False
    apart = entered(examined.model, examined.arguments, flow)
    return apart is not None and in_pieces(flow.layout.to_rows(apart))


def align_rows(examined: Examined, flow: Flow, tokens: int) -> tuple[tuple[Branch, str] | None, set[int]]:
    """Change some tokens, one a pass, and compare the rows that change with those of the tokens.

    Return the first branch that mixes up rows with a sentence, and the branches whose values follow their token alone.
    """
    if tokens < FEWEST_TOKENS:
        return None, set()
    held = HeldStates(examined, flow)
    untouched = read_alone(held, None, tokens)
    alone = {number for number, reads in untouched.items() if reads.values is not None}
    for token in (tokens // 2, tokens // 2 + 1, tokens // 4):
        changed = read_alone(held, token, tokens)
        for number, reads in untouched.items():
            branch, now = flow.branches[number], changed.get(number)
            if now is None:
                continue
            if sentence := describe_mixing(reads, now, token, flow.width, tokens):
                return (branch, sentence), alone
            if reads.values is not None and not follows_alone(reads.values, now.values, token, tokens):
                alone.discard(number)
    return None, alone


def read_alone(held: HeldStates, token: int | None, tokens: int) -> dict[int, BranchReads]:
    """Run a pass in which tokens read themselves alone, with one token of the first sample changed in every state."""
    flow = held.flow
    reader = AttentionReader(flow, tokens, alone=True)
    rows: list[Tensor] = []  # since the last addition

    def change(states: Tensor) -> Tensor:
        if token is None or states.shape[1] != tokens:
            return states
        noise = torch.randn(states.shape[-1], generator=torch.Generator().manual_seed(5), dtype=torch.float64)
        states = states.clone()
        states[0, token] = noise.to(states) * states.pow(2).mean().sqrt() - states[0, token]
        return states

    def compute(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if func in ROW_READERS and args and args[0].shape[-1] == flow.width:
            rows.append(args[0].detach().clone())
        return reader.compute(func, args, kwargs)

    def look(branch: Branch, state: Tensor, value: Tensor) -> None:
        returned, reads = flow.layout.to_rows(value), reader.reads
        if branch.number in reads and branch.mixes and state.shape == value.shape and returned.shape[1] == tokens:
            reads[branch.number].rows, reads[branch.number].value = list(rows), returned.clone()
        else:
            reads.pop(branch.number, None)
        rows.clear()
        reader.drop_later(branch)

    held.run(change, look, attend=reader.attend, score=reader.score, compute=compute)
    return {number: reads for number, reads in reader.reads.items() if reads.value is not None}


def describe_mixing(before: BranchReads, after: BranchReads, token: int, width: int, tokens: int) -> str:
    """Return a sentence on rows that hold parts of several tokens, or that are added to other tokens; '' if all is well."""
    assert before.value is not None and after.value is not None
    if before.queries is not None and after.queries is not None and before.queries.shape == after.queries.shape:
        apart = differs(after.queries, before.queries)
        axis = head_axis(tuple(apart.shape), len(before.value), tokens, width)
        if axis is not None:
            heads = apart.movedim(axis, 0)  # (H, ...)
            active = heads.flatten(1).any(1)
            if bool(active.any()) and not bool(active.all()) and int(heads[active][0].any(-1).sum()) > 1:
                count = f"{int(active.sum())} of {len(active)} heads"
                return f"a token is in the queries of {count}: are heads split without a transpose?"
            if apart.shape[axis] * apart.shape[-1] == width and in_pieces(apart):
                return "a row of queries holds parts of several tokens: are heads split without a transpose?"
    pairs = list(zip(before.rows, after.rows)) if len(before.rows) == len(after.rows) else []
    pairs = [*pairs, (before.value, after.value)] if before.alone else pairs
    if width != tokens and any(x.shape == y.shape and in_pieces(differs(y, x)) for x, y in pairs):
        return "a row holds parts of several tokens: are heads joined, or is a picture reshaped, without a transpose?"
    apart = differs(after.value, before.value).any(-1)  # (S, T)
    if before.alone and bool(apart.any()) and not bool(apart[:, token].any()):
        others = ", ".join(str(int(other)) for other in apart.any(0).nonzero().flatten()[:4])
        cause = "are heads joined without a transpose, or tokens not put back in their order?"
        return f"what attention returns for token {token} is added to token {others}: {cause}"
    return ""


def head_axis(shape: tuple[int, ...], samples: int, tokens: int, width: int) -> int | None:
    """Return the axis of heads of queries (B, H, T, d), (B, H, d, T) or (B, T, H, d), where B may be larger by windows; or None."""
    if len(shape) != 4 or shape[0] == tokens:
        return None
    if shape[0] == samples and shape[1] == tokens and shape[2] * shape[3] == width:
        return 2 if shape[2] != tokens else None
    heads_first = {(shape[0] * shape[2], shape[1] * shape[3]), (shape[0] * shape[3], shape[1] * shape[2])}
    return 1 if (samples * tokens, width) in heads_first else None


def in_pieces(apart: Tensor) -> bool:
    """Return whether several rows change, and each in few of its numbers. apart (..., D)"""
    shares = apart.double().mean(-1)
    return int((shares > 0).sum()) > 1 and float(shares.max()) <= PIECE


def follows_alone(before: Tensor, after: Tensor | None, token: int, tokens: int) -> bool:
    """Return whether values (..., T, d) change at one token alone. Those of a moving average or a convolution change at others."""
    if after is None or before.shape != after.shape or before.shape[-2] != tokens:
        return False
    changed = differs(after, before).any(-1).flatten(0, -2).any(0)  # (T,)
    return changed.nonzero().flatten().tolist() in ([], [token])
