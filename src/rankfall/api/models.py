"""Request measurements of Hugging Face models, by name or as objects, from `models/`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rankfall.api.layers import check_seed, check_whole_numbers, refuse_unused
from rankfall.api.modules import examine_module, residuals_of_examined
from rankfall.api.residuals import Residuals
from rankfall.errors import RankfallError
from rankfall.measure.models import make_request
from rankfall.models.source import ModelSource, usual_phase
from rankfall.models.subject import Request, rows_of_subjects
from rankfall.models.texts import Texts
from rankfall.streams.arguments import NoStream


@contextmanager
def open_request(
    model: Any,
    samples: int,
    length: int,
    text: str,
    phase: str | None,
    variants: Sequence[str] | None,
    config: Any,
    seed: int | None,
) -> Iterator[Request]:
    """Build the request for a model. A model object is first saved to a temporary folder."""
    check_whole_numbers(samples=samples, length=length)
    if not isinstance(text, str) or not (config is None or isinstance(config, dict)):
        raise RankfallError("text must be a name or a file, and config a dict")
    if variants is not None and (
        isinstance(variants, str) or not all(isinstance(variant, str) for variant in variants)
    ):
        raise RankfallError(f"variants is {variants!r}: it must be a list of names")
    with tempfile.TemporaryDirectory() as folder:
        name = model if isinstance(model, str) else folder
        if not isinstance(model, str):
            model.save_pretrained(folder)
        source = ModelSource(name, phase or usual_phase(name), config=config or {})
        if source.phase == "pretrained":
            refuse_unused("pretrained weights have none", seed=seed)
        request = make_request(
            source, Texts(text, samples, length), variants=None if variants is None else tuple(variants)
        )
        assert request is not None  # None stands for an optional model that is not installed
        yield request


def residuals_of(
    model: Any,
    *,
    samples: int,
    norm: str,
    seed: int | None = None,
    length: int = 128,
    text: str = "topics",
    phase: str | None = None,
    variants: Sequence[str] | None = None,
    seeds: int = 1,
    config: dict[str, Any] | None = None,
) -> dict[str, Residuals]:
    """Return variant -> relative residual by layer, as means over seeds and samples."""
    from rankfall.rank.residuals.models import residual_rows

    check_whole_numbers(seeds=seeds)
    seed_range = range(check_seed(seed), check_seed(seed) + seeds)
    with open_request(model, samples, length, text, phase, variants, config, seed) as request:
        try:
            rows = rows_of_subjects(request, seed_range, lambda subject: residual_rows(subject, (norm,)))
        except NoStream:
            if variants is not None or seeds != 1:
                raise
            examined = examine_module(model, None, seed=check_seed(seed), length=length, config=config)
            examined.notes.append("measured as any module, on random inputs")
            return residuals_of_examined(examined, norm)
    by_variant: dict[str, dict[int, list[dict[str, Any]]]] = {}
    for row in rows:
        by_variant.setdefault(row["variant"], {}).setdefault(row["layer"], []).append(row)
    return {
        name: Residuals.from_layers(mean(layers[layer]) for layer in sorted(layers))
        for name, layers in by_variant.items()
    }


def mean(rows: list[dict[str, Any]]) -> tuple[float | None, bool, str]:
    """Average the rows of a layer: value, floor and reason. A layer in which a row has no value has None."""
    lacking = [row["value_reason"] for row in rows if row["value"] is None]
    if lacking:
        return None, False, lacking[0]
    noise = sum(row["floor"] for row in rows) > len(rows) / 2
    return sum(row["value"] for row in rows) / len(rows), noise, ""


def law_rows(
    model: Any,
    *,
    samples: int,
    variant: str = "SAN",
    length: int = 128,
    text: str = "topics",
    phase: str | None = None,
    seed: int | None = None,
    config: dict[str, Any] | None = None,
) -> list[dict[str, Any]]:
    """Return the rows of `model_law` of one variant; empty for models whose layers are not plain post-norm attention."""
    from rankfall.rank.law.models import law_rows

    with open_request(model, samples, length, text, phase, (variant,), config, seed) as request:
        return rows_of_subjects(request, [check_seed(seed)], law_rows)
