"""The variants of any module: its stream without the skips of token mixers, without the tokenwise branches, or without both.

They have the names of a transformer's variants and equal them for a transformer. `SAN` has the token mixers alone, `SAN+MLP` adds the
tokenwise branches with their skips, `SAN+skip` has the mixers with their skips, and `transformer` is the whole model. A branch that
reads elsewhere (cross-attention) stays as it is in all of them.
"""

from __future__ import annotations

from torch import Tensor

from rankfall.streams.arguments import keep_random_state
from rankfall.streams.edits import Edits
from rankfall.streams.examine import Examined
from rankfall.streams.flow import TOKENWISE, Branch, Flow
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


def cut_by(variant: Variant) -> Edits:
    """Return the edits of a pass that leave out the parts that this variant lacks."""

    def edit(branch: Branch, state: Tensor, value: Tensor) -> Tensor | None:
        if branch.mixes:
            return None if variant.attention_skip else value
        return value if branch.kind == TOKENWISE and not variant.mlp_skip else None

    def drop(branch: Branch) -> tuple[bool]:
        return (branch.kind == TOKENWISE and not variant.mlp,)

    return Edits() if variant.whole else Edits(edit=edit, drop=drop, drop_parts=(not variant.mlp,))


def states_of(examined: Examined, flow: Flow, edits: Edits | None = None) -> list[Tensor]:
    """Return the states of layers 0 .. L of one stream, each (S, T, D)."""
    with keep_random_state():
        seen = run_through(examined.model, examined.arguments, flow, edits or Edits())
    return [flow.layout.to_rows(state) for state in seen.states]
