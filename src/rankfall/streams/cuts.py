"""The variants of any module: its stream without the skips of token mixers, without the tokenwise branches, or without both.

They have the names of a transformer's variants and equal them for a transformer. `SAN` has the token mixers alone, `SAN+MLP` adds the
tokenwise branches with their skips, `SAN+skip` has the mixers with their skips, and `transformer` is the whole model. A branch that
reads elsewhere (cross-attention) stays as it is in all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from rankfall.streams.arguments import keep_random_state
from rankfall.streams.editor import run_through
from rankfall.streams.examine import Examined
from rankfall.streams.flow import CROSS, TOKENWISE, Branch, Edits, Flow, mix_variants
from rankfall.streams.frames import Operation


@dataclass(frozen=True)
class Variant:
    """The parts that stay in every block. `identity`: linear maps (by the last part of their names) that return their
    input, as in published variants.
    """

    name: str
    attention_skip: bool = True
    mlp: bool = True
    mlp_skip: bool = True
    identity: tuple[str, ...] = ()


VARIANTS = {
    variant.name: variant
    for variant in (
        Variant("SAN", attention_skip=False, mlp=False),
        Variant("SAN+MLP", attention_skip=False),
        Variant("SAN+skip", mlp=False),
        Variant("transformer"),
        Variant("SAN+bare MLP", attention_skip=False, mlp_skip=False),
    )
}


def variants_of(flow: Flow) -> list[Variant]:
    """Return the variants that differ from one another in this stream."""
    if not flow.skips:
        return [VARIANTS["transformer"]]
    mixes = any(branch.mixes for branch in flow.branches)
    mlp = flow.parallel or any(branch.kind == TOKENWISE for branch in flow.branches)
    differing = {
        "SAN": mixes,
        "SAN+MLP": mixes and mlp,
        "SAN+skip": mlp,
        "transformer": True,
        "SAN+bare MLP": mixes and mlp and not flow.parallel,
    }
    return [VARIANTS[name] for name, differs in differing.items() if differs]


def cut_by(*variants: Variant, axis: int = 0, unused: frozenset[Operation] = frozenset()) -> Edits:
    """Return the edits of a pass that leaves out what variants lack. Its batch has a part for each of them, along `axis`.

    If a skip is cut, the addition X + f(X) returns the tensor f(X) itself; nothing is subtracted afterwards. If the MLP is removed, the
    layer returns the state that would have entered the MLP's addition, so that its skip and a norm behind it are gone too. `unused`:
    products that feed MLPs alone, which a pass without MLPs skips.
    """
    without_mlp = [not variant.mlp for variant in variants]

    def edit(branch: Branch, state: Tensor, value: Tensor) -> Tensor | None:
        skips = [
            variant.attention_skip if branch.mixes else variant.mlp_skip or not variant.mlp or branch.kind == CROSS
            for variant in variants
        ]
        if all(skips):
            return None
        return mix_variants(state + value, value, [not skip for skip in skips], axis) if any(skips) else value

    return Edits(
        edit=edit,
        drop=lambda branch: without_mlp if branch.kind == TOKENWISE else (),
        drop_parts=without_mlp,
        axis=axis,
        unused=unused if all(without_mlp) else frozenset(),
        identity=frozenset(variants[0].identity),
    )


def states_of(examined: Examined, flow: Flow, edits: Edits | None = None) -> list[Tensor]:
    """Return the states of layers 0 .. L of one stream, each (S, T, D)."""
    with keep_random_state():
        result = run_through(examined.model, examined.arguments, flow, edits or Edits())
    return [flow.layout.to_rows(state) for state in result.states]
