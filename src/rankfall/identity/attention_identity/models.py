"""Information in the attention weights of a Hugging Face model: null space, second distributions, intervals, effective attention."""

from dataclasses import replace
from typing import Literal

from rankfall.identity.attention import head_rows
from rankfall.identity.model_views import model_views
from rankfall.measure.context import Context, Rows
from rankfall.measure.models import TEXTS, measure_models
from rankfall.models.source import PACKAGES
from rankfall.models.subject import Subject
from rankfall.models.texts import batch_for

NEEDS = "nothing"
FILES, READS = TEXTS, PACKAGES
LIMITS = {"lengths": (3, None), "entries": (0, None)}
BYTES = 2**30  # approximate size of the weights of all layers for one part of the samples


@measure_models(samples=16, dtype="float64")
def model_attention_identity(
    context: Context,
    subject: Subject,
    *,
    lengths: list[int] = [128],
    entries: int = 1,
    masked: int = 8,
    left_out: list[Literal["nothing", "first token"]] = ["nothing", "first token"],
) -> Rows:
    """Measure every layer and head of a model.

    `lengths`: of the texts; images have one length. `entries`: rows of weights in each head for which linear programs are solved.
    `masked`: number of rows measured in a causal model. `left_out`: what the numbers exclude, one set of rows for each.
    """
    rows: Rows = []
    for length in (subject.tokens,) if subject.loaded.images else lengths:
        at = at_length(subject, length)
        views = (view for part in at.parts(BYTES // at.layers) for view in model_views(at, *part))
        rows += [at.labels() | row for row in head_rows(views, at.seed or 0, entries, masked, left_out)]
    return rows


def at_length(subject: Subject, length: int) -> Subject:
    """Return the model on windows of another length, each with the special tokens of a document."""
    if length == subject.tokens:
        return subject
    texts = replace(subject.request.texts, length=length)
    return replace(subject, batch=batch_for(subject.loaded, texts), request=replace(subject.request, texts=texts))
