"""Rows of `model_attention_identity`: information in the attention weights of a model, by layer, head and length of the text."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rankfall.identity.attention import AttentionOptions, LayerNumbers
from rankfall.identity.model_views import model_views
from rankfall.models.subject import Request, Subject, subjects
from rankfall.models.texts import batch_for

BYTES = 2**30  # approximate size of the weights of all layers for one part of the samples


def attention_identity(
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
