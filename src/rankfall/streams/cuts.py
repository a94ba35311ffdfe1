"""The variants of any module: its stream without the skips of token mixers, without the tokenwise branches, or without both.

They have the names of a transformer's variants and equal them for a transformer. `SAN` has the token mixers alone, `SAN+MLP` adds the
tokenwise branches with their skips, `SAN+skip` has the mixers with their skips, and `transformer` is the whole model. A branch that
reads elsewhere (cross-attention) stays as it is in all of them.
"""

from __future__ import annotations

from torch import Tensor

from rankfall.streams.arguments import keep_random_state
from rankfall.streams.edits import Edits, mix_variants
from rankfall.streams.examine import Examined
from rankfall.streams.flow import CROSS, TOKENWISE, Branch, Flow
from rankfall.streams.frames import Operation
from rankfall.streams.passes import run_through
from rankfall.streams.variants import VARIANTS, Variant


def variants_of(flow: Flow) -> list[Variant]:
    """Return the variants that differ from one another in this stream."""
    plain = any(branch.kind == TOKENWISE for branch in flow.branches)
    beside = flow.parallel
    mixes = any(branch.mixes for branch in flow.branches)
    if not flow.skips:
        return [VARIANTS["transformer"]]
    kept = []
    for variant in VARIANTS.values():
        bare = variant.mlp and not variant.mlp_skip
        needs_mlp = not variant.mlp or bare or variant.name == "SAN+MLP"
        if variant.whole or (variant.name == "SAN" and mixes):
            kept.append(variant)
        elif (needs_mlp and not (plain or beside)) or (not variant.attention_skip and not mixes):
            continue
        elif not (bare and beside):
            kept.append(variant)
    return kept


def cut_by(*variants: Variant, axis: int = 0, unused: frozenset[Operation] = frozenset()) -> Edits:
    """Return the edits of a pass that leaves out what variants lack. Its batch has a part for each of them, along `axis`.

    If a skip is cut, the addition X + f(X) returns the tensor f(X) itself; nothing is subtracted afterwards. If the MLP is removed, the
    layer returns the state that would have entered the MLP's addition, so that its skip and a norm behind it are gone too. `unused`:
    products that feed MLPs alone, which a pass without MLPs skips.
    """
    gone = [not one.mlp for one in variants]

    def edit(branch: Branch, state: Tensor, value: Tensor) -> Tensor | None:
        kept = [
            one.attention_skip if branch.mixes else one.mlp_skip or not one.mlp or branch.kind == CROSS
            for one in variants
        ]
        if all(kept):
            return None
        return mix_variants(state + value, value, [not one for one in kept], axis) if any(kept) else value

    return Edits(
        edit=edit,
        drop=lambda branch: gone if branch.kind == TOKENWISE else (),
        drop_parts=gone,
        axis=axis,
        unused=unused if all(gone) else frozenset(),
        identity=frozenset(variants[0].identity),
    )


def states_of(examined: Examined, flow: Flow, edits: Edits | None = None) -> list[Tensor]:
    """Return the states of layers 0 .. L of one stream, each (S, T, D)."""
    with keep_random_state():
        seen = run_through(examined.model, examined.arguments, flow, edits or Edits())
    return [flow.layout.to_rows(state) for state in seen.states]
