"""The check of positions."""

from typing import Any

import torch
from torch import Tensor

from rankfall.check.alignment import align_rows, entry_in_pieces
from rankfall.check.attention import AttentionReader, BranchReads, weights_of
from rankfall.check.equal import IN_INPUTS, constant_floats, equal_rows, repeat_first, with_equal_tokens
from rankfall.check.named import NO_MIXER, Limit, Result, failed, named, passed, skipped, warned
from rankfall.check.passes import change_entry, reverse_tokens
from rankfall.check.recording import RecordedStream
from rankfall.streams.arguments import in_float64
from rankfall.streams.axes import differs
from rankfall.streams.flow import Branch

FAR = Limit(
    4,
    "if at least so many heads, and all, weigh equal tokens the more the farther they are, it fails",
    "our choice: rotary or learned positions order the distances at random, and seldom so in each of four heads",
)
TOLERANCE = 1e-6  # of the largest number: rounding in float64 is smaller, and what positions change is larger


@named("positions-differ", FAR)
def positions_differ(recording: RecordedStream) -> Result:
    """Does a model know the order of tokens?

    All tokens of a sample are set equal, in the inputs if these are token numbers, else in the first state. Then the distinct rows of each
    state are counted (relative distance above 1e-9). If rows stay equal, as with relative positions, the order of the tokens is reversed.
    The check warns if this only reverses the rows, as in a model of sets, and if a causal mask is all that knows the order.

    Scores of equal tokens differ by their positions alone. If all heads weigh a token the more the farther it is, a bias for near tokens,
    such as ALiBi, has the wrong sign, and the check fails. Rotary positions must turn queries and keys alike, so that a token has the same
    score with itself everywhere, and no two tokens alike. If the input of an attention has equal rows, its values must have equal rows,
    unless they follow other tokens, as behind a moving average. If tokens read themselves alone, a changed token must change its own row
    of what the branch returns, whole rows of what it reads, and queries of all heads.
    """
    last, tokens = recording.report.layers[-1].distinct, recording.report.tokens
    heads = weighed_heads(recording)
    if len(heads) >= FAR and all(rises for rises, _ in heads):
        weigh = f"all {len(heads)} heads weigh equal tokens the more the farther they are"
        return failed(f"{weigh}: is the sign of a bias wrong?")
    mixers = [addition for addition in recording.additions if addition.branch.mixes]
    if mixers and not any(addition.value for addition in mixers):
        return skipped("what mixes tokens returns zero, as zero-initialised last maps do")
    if (misplacement := find_misplacement(recording)) is not None:
        return misplacement
    if last is not None and last > 1:
        return passed(f"equal tokens come out as {last} different rows of {tokens}")
    if not any(branch.mixes for branch in recording.flow.branches):
        return skipped(NO_MIXER[bool(recording.flow.missing)])
    sentence = "equal tokens stay equal" if last is not None else "tokens cannot be set equal"
    even = bool(heads) and all(even for _, even in heads)
    if even and recording.report.equal_tokens == IN_INPUTS and recording.flow.mixer == "attention":
        subject = "only the causal mask knows" if recording.flow.causal else "nothing knows"
        weigh = f"{sentence}, and each weighs all that it sees alike"
        return warned(f"{weigh}: {subject} the order; are positions missing, or on another axis?")
    if knows_order(recording):
        return passed("the order of tokens is known: reversing them changes the states")
    if recording.report.equal_tokens != IN_INPUTS:
        return skipped("the layers know no order; positions may have been added to the inputs, which are vectors")
    return warned(f"{sentence}, and reversing their order reverses the states: no layer knows the order of tokens")


def knows_order(recording: RecordedStream) -> bool:
    """Return whether reversing the order of tokens does anything else than to reverse the order of the last states."""
    in_inputs = recording.report.equal_tokens == IN_INPUTS
    inputs = reverse_tokens(recording.examined.arguments, recording.report.shape) if in_inputs else None
    enter = None if inputs else lambda tensor: change_entry(recording.flow, tensor, lambda rows: rows.flip(1))
    rows = recording.run(inputs, enter=enter).states[-1]
    return rows.shape == recording.states[-1].shape and bool(differs(rows.flip(1), recording.states[-1]).any())


def find_misplacement(recording: RecordedStream) -> Result | None:
    """Return a warning on rows that are mixed up, positions in values, or rotations of queries and keys; None if all is well."""
    flow, tokens = recording.flow, recording.report.tokens
    if not recording.heads or flow.entry is None or not flow.skips:
        return None
    if entry_in_pieces(recording.examined, flow):
        cause = "is a picture reshaped, and its axes not permuted?"
        return warned(f"a row of the first state holds parts of several tokens: {cause}")
    mixed, alone = align_rows(recording.examined, flow, tokens)
    if mixed is not None:
        branch, sentence = mixed
        return warned(f"in layer {branch.layer}, {sentence}", recording.path_of(branch))
    reader = AttentionReader(flow, tokens, alone=False)
    warnings: list[Result] = []
    alike: list[Tensor] = []  # (T, T) by branch: whether positions turn two tokens alike

    def enter(tensor: Tensor) -> Tensor:
        return change_entry(flow, tensor, repeat_first)

    def look(branch: Branch, state: Tensor, value: Tensor) -> None:
        reader.drop_later(branch)
        if not branch.mixes:
            return
        rows = reader.reads.get(branch.number, BranchReads())
        matrices = [x for x in (rows.queries, rows.keys, rows.values) if x is not None and x.shape[-2] == tokens]
        if len(matrices) < 3 or state.shape != value.shape or unequal(flow.layout.to_rows(state)):
            alike.append(torch.zeros(tokens, tokens, dtype=torch.bool))
            return
        queries, keys, values = matrices
        if sentence := describe_rows(queries, keys, values if branch.number in alone else None):
            warnings.append(warned(f"in layer {branch.layer}, for equal tokens, {sentence}", recording.path_of(branch)))
        alike.append(alike_tokens(queries, keys, rows.weights))

    recording.run(edit=look, enter=enter, attend=reader.attend, score=reader.score, compute=reader.compute)
    if not warnings and alike and (groups := twins(recording, torch.stack(alike).all(0))):
        count = f"{sum(len(group) for group in groups)} of {tokens} tokens"
        pair = f"tokens {groups[0][0]} and {groups[0][1]} first"
        return warned(f"queries and keys turn {count} like another one, {pair}: does one coordinate turn them twice?")
    return warnings[0] if warnings else None


def describe_rows(queries: Tensor, keys: Tensor, values: Tensor | None) -> str:
    """Return a sentence on what is wrong in an attention whose tokens are equal, or ''. `values`: if they follow their token alone."""
    if values is not None and unequal(values):
        return "values differ: are positions in them?"
    if not (equal_lengths(queries) and equal_lengths(keys)):
        return ""
    if unequal(queries) != unequal(keys):
        return f"positions turn {'queries and not keys' if unequal(queries) else 'keys and not queries'}"
    if not unequal(queries) or queries.shape != keys.shape:
        return ""
    itself = (queries * keys).sum(-1)  # (B, H, T)
    if (itself - itself[..., :1]).abs().max() > TOLERANCE * (queries @ keys.mT).abs().max():
        cause = "do queries and keys turn in opposite directions?"
        return f"the score of a token with itself depends on its position: {cause}"
    return ""


def alike_tokens(queries: Tensor, keys: Tensor, weights: Tensor | None) -> Tensor:
    """Return for which pairs of tokens (T, T) the queries, the keys, and all weights of theirs are equal and positive."""
    tokens = queries.shape[-2]
    if weights is None or weights.shape[-2:] != (tokens, tokens) or not bool((weights > 0).all()):
        return torch.zeros(tokens, tokens, dtype=torch.bool)
    tables = [x.detach().double().movedim(-2, 0).flatten(1) for x in (queries, keys, weights, weights.mT)]  # (T, ...)
    return torch.stack([equal_rows(x, TOLERANCE * x.norm(dim=1).max()) for x in tables]).all(0)


def twins(recording: RecordedStream, alike: Tensor) -> list[list[int]]:
    """Return the groups of tokens that no layer tells apart, if there are several and the first state of equal inputs does not, either.

    One group is that of tokens without positions, as registers are.
    """
    groups = [row.nonzero().flatten().tolist() for row in alike]
    several = [group for token, group in enumerate(groups) if len(group) > 1 and group[0] == token]
    if len(several) < 2:
        return []
    equal, _ = with_equal_tokens(recording.examined, recording.flow, recording.report.shape)
    equal = equal or constant_floats(recording.examined.arguments)
    if equal is None:
        return []
    first = recording.run(equal).states[0]
    same = [group for group in several if not bool(differs(first[:, group], first[:, group[:1]]).any())]
    return same if len(same) > 1 else []


def unequal(x: Tensor) -> bool:
    """Return whether rows (..., T, d) in the middle of a sample differ."""
    middle = x[..., x.shape[-2] // 4 : -(x.shape[-2] // 4) or None, :]  # convolutions see the ends
    return bool((middle - middle[..., :1, :]).abs().max() > TOLERANCE * x.abs().max())


def equal_lengths(x: Tensor) -> bool:
    """Return whether rows (..., T, d) in the middle of a sample have one length, as after a rotation."""
    return not unequal(x.norm(dim=-1, keepdim=True))


def weighed_heads(recording: RecordedStream) -> list[tuple[bool, bool]]:
    """Return two answers for each head: does it weigh equal tokens the more the farther they are, and does it weigh them alike?"""
    equal, edits = with_equal_tokens(recording.examined, recording.flow, recording.report.shape)
    heads: list[tuple[bool, bool]] = []
    tokens = recording.report.tokens

    def look(number: int, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        result = in_float64(func, args, kwargs)
        weights = weights_of(func, args, kwargs, result)
        if recording.flow.branches[number].mixes and weights.shape[-2:] == (tokens, tokens):
            rise = rise_with_distance(weights.detach())  # (B, H, T, T - 1)
            far = (rise >= -1e-9).all(-1).all(-1).all(0) & (rise > TOLERANCE).any(-1).any(-1).all(0)
            heads.extend(zip(far.tolist(), (rise.abs() < TOLERANCE).all(-1).all(-1).all(0).tolist()))
        return result

    if recording.heads and tokens > 4:
        recording.run(equal, attend=look, **edits)
    return heads


def rise_with_distance(weights: Tensor) -> Tensor:
    """Return how much more a token weighs than its nearer neighbour, as a share of the largest weight; hidden: 0. (B, H, T, T - 1)"""
    weights = weights.unsqueeze(1) if weights.dim() == 3 else weights.flatten(0, -4)
    right, left = weights[..., 1:], weights[..., :-1]  # keys j + 1 and j
    position = torch.arange(weights.shape[-1])
    right_is_nearer = position[:-1] < position[:, None]  # j + 1 <= i, the query
    rise = torch.where(right_is_nearer, left - right, right - left)  # from the nearer to the farther
    return torch.where((right > 0) & (left > 0), rise, 0.0) / weights.amax(-1, keepdim=True).clamp_min(1e-300)
