"""The law of rank collapse on a real model's weights: residuals without a rounding floor, local exponents, and the slack of the bounds.

Row l is about the step from row l - 1 through layer l. The bounds are about its attention alone, so their left side is the residual
after attention and before the norm (`log10_attention`). Where scores spread over more than 1.256 within a row they are null and
`theory_reason` says so. Residuals are propagated apart from the part that tokens share (`rank/centred/`), so 1e-100 is as exact as 0.1.
They are listed with the residuals of an ordinary forward pass.
"""

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from rankfall.measure.context import Context, Rows
from rankfall.measure.models import TEXTS, measure_models
from rankfall.models.convert import as_network, convertible
from rankfall.models.source import PACKAGES
from rankfall.models.subject import Subject, first_states
from rankfall.nets.network import Network
from rankfall.nets.norms.none import none as no_norm
from rankfall.rank import residual as res
from rankfall.rank.bounds import (
    bounds,
    exponent,
    leave_theory_empty,
    log10_norm,
    none_reason,
    pick,
    refusal_of_attention,
    withhold,
)
from rankfall.rank.centred.attention import attend, step
from rankfall.rank.centred.scaled import State, begin
from rankfall.rank.powers import or_nan

NEEDS = "nothing"
BUILDS = {
    "init": ["published"],
    "mlp": ["gelu", "none", "relu"],
    "norm": ["layer", "none"],
    "residual": ["add", "none"],
}
FILES, READS = TEXTS, PACKAGES


@measure_models(seeds=2, samples=4, length=128, variants=["SAN", "SAN+MLP", "SAN+skip"])
def model_law(context: Context, subject: Subject) -> Rows:
    """Measure the variants of a model.

    There are no rows for models whose layers are not plain post-norm attention (those of BERT, RoBERTa, DistilBERT and ALBERT are).
    """
    return law_rows(subject)


def law_rows(subject: Subject) -> Rows:
    """Return the rows of a model; none if it cannot be converted to Rankfall's blocks."""
    if not convertible(subject):
        return []
    start = first_states(subject, 0, subject.batch.samples).double()[None]
    return [
        {"variant": variant.name} | row
        for variant in subject.variants
        for row in variant_rows(as_network(subject, variant), start)
    ]


@torch.no_grad()
def variant_rows(network: Network, start: Tensor) -> Rows:
    """Return the rows of a network of one member, from states (1, B, T, D)."""
    state, ordinary = begin(network, start), start
    theory: dict[str, Any] = {"exponent": None} | leave_theory_empty("the input")
    rows: Rows = []
    for layer in range(len(network.blocks) + 1):
        if layer:
            block, before = network.blocks[layer - 1], state
            state, ordinary = step(block, before), block(ordinary)
            theory = {"exponent": exponent(block, before, state)} | _theory(block, before)
        x = state.full()
        log10 = or_nan(log10_norm(state.rest, "composite") - res.matrix_norm(x, "composite").log10(), x)  # (1, B)
        columns = {"log10_residual": log10} | theory | {"direct": res.relative_residual(ordinary)}
        rows += [
            {"layer": layer, "sample": sample, "value_reason": none_reason(log10[0, sample])}
            | withhold({name: pick(value, sample) for name, value in columns.items()})
            for sample in range(ordinary.shape[1])
        ]
    return rows


def attention_alone(block: Any) -> Any:
    """Return the block as the lemma sees it: its attention and its skip, without what follows them."""
    return SimpleNamespace(attention=block.attention, residual=block.residual, norm1=no_norm, mlp=None)


def _theory(block: Any, before: State) -> dict[str, Any]:
    """Return bounds on the attention's output for a state, beside its actual residual, each (1, B)."""
    alone = attention_alone(block)
    stopped = refusal_of_attention(alone, before)
    if stopped:
        return leave_theory_empty(stopped)
    absolute = log10_norm(attend(block.attention, before).rest, "composite")
    return {"log10_attention": absolute} | bounds(alone, before, absolute)[0]
