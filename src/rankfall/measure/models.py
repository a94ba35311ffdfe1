"""Measure Hugging Face models: the options that name a model and its texts, their request, and the loop over seeds.

A measure of models is a function of the context and one loaded model. `measure_models` adds the options that all of them share.
"""

import importlib.util
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

from rankfall.errors import RankfallError
from rankfall.measure.context import Context, Rows
from rankfall.models.source import PACKAGED, ModelSource
from rankfall.models.subject import Request, rows_of_subjects
from rankfall.models.texts import Texts

# the fact FILES of a measure of models
TEXTS = {"text": ["topics", "wiki_bio", "reactions", "zipf", "random", "pictures"]}
SHARED: dict[str, tuple[Any, Any]] = {  # options of every measure of models, with their types and defaults
    "model": (str, inspect.Parameter.empty),
    "phase": (Literal["init", "pretrained"], "init"),
    "revision": (str | None, None),
    "quantise": (str | None, None),
    "config": (dict | None, None),
    "seeds": (int, 1),
    "text": (str, "topics"),
    "optional": (bool, False),  # no rows, instead of an error, if the model's package is not installed
}
CHOSEN: dict[str, Any] = {  # options of those measures that state a default for them, with their types
    "samples": int,
    "length": int,
    "sentences": int,
    "dtype": Literal["float32", "float64"],
    "definition": Literal["clean", "published"],
    "variants": list[Literal["SAN", "SAN+MLP", "SAN+skip", "transformer", "SAN+bare MLP"]] | None,
    "streamed": bool,
}


def measure_models(**defaults: Any) -> Callable[[Callable[..., Rows]], Callable[..., Rows]]:
    """Return a decorator that makes a measure from a function of the context, a loaded model and the measure's own options.

    The measure also has the options of `SHARED`, and those of `CHOSEN` with a value in `defaults`. Without `variants` it measures the whole
    model.
    """
    kinds = {name: kind for name, (kind, _) in SHARED.items()} | CHOSEN
    usual = {name: default for name, (_, default) in SHARED.items()} | defaults

    def decorate(rows_of: Callable[..., Rows]) -> Callable[..., Rows]:
        parameters = [p for p in inspect.signature(rows_of).parameters.values() if p.kind is p.KEYWORD_ONLY]
        shared_parameters = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kinds[name])
            for name, default in usual.items()
        ]
        context = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Context)
        signature = inspect.Signature([context, *shared_parameters, *parameters])

        def measure(context: Context, **options: Any) -> Rows:
            bound = signature.bind(context, **options)
            bound.apply_defaults()
            chosen = bound.arguments
            named = {name: chosen[name] for name in ("phase", "revision", "quantise", "streamed") if name in chosen}
            source = ModelSource(chosen["model"], config=chosen["config"] or {}, **named)
            samples = chosen["sentences"] if "sentences" in chosen else chosen["samples"]
            length = chosen["lengths"][0] if "lengths" in chosen else chosen["length"]
            variants = chosen.get("variants", ["transformer"])
            fields = {name: chosen.get(name) for name in ("definition", "dtype")}
            fields["variants"] = None if variants is None else tuple(variants)
            texts = Texts(chosen["text"], samples, length)
            request = make_request(source, texts, optional=chosen["optional"], **fields)
            if request is None:
                return []
            rows = partial(rows_of, context, **{p.name: chosen[p.name] for p in parameters})
            seeds = chosen["seeds"] if source.phase == "init" else 1  # pretrained weights have no seed
            return context.rows(range(seeds), lambda seed: rows_of_subjects(request, [seed], rows_of=rows, say=print))

        measure.__name__, measure.__doc__, measure.__module__ = rows_of.__name__, rows_of.__doc__, rows_of.__module__
        measure.__annotations__ = {p.name: p.annotation for p in signature.parameters.values()}
        measure.__signature__ = signature  # type: ignore[attr-defined]
        return measure

    return decorate


def make_request(source: ModelSource, texts: Texts, *, optional: bool = False, **chosen: Any) -> Request | None:
    """Return the request, or None for an optional model whose package is not installed.

    `chosen` holds fields of the request; None means the default."""
    lacking = importlib.util.find_spec("transformers") is None
    if lacking and not optional:
        raise RankfallError("measuring models needs transformers: pip install 'rankfall[models]'")
    packaged = PACKAGED.get(source.name)
    if lacking or (optional and packaged is not None and importlib.util.find_spec(packaged.module) is None):
        return None
    request = Request(source, texts, **{name: value for name, value in chosen.items() if value is not None})
    request.check()
    return request
