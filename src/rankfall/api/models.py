"""Models of Hugging Face, by name or as objects, as requests to `pretrained/`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rankfall.measures._models import requested
from rankfall.pretrained.source import MINILM, ModelSource
from rankfall.pretrained.subject import Request
from rankfall.pretrained.texts import Texts


@contextmanager
def request(
    given: Any, samples: int, length: int, text: str, phase: str | None, variants: tuple[str, ...] | None, config: Any
) -> Iterator[Request]:
    """A request for a model; one that is an object is written to a folder first, with weights as they are."""
    with tempfile.TemporaryDirectory() as folder:
        name = given if isinstance(given, str) else folder
        if not isinstance(given, str):
            given.save_pretrained(folder)
        local = name in MINILM or Path(name).expanduser().is_dir()
        source = ModelSource(name, phase or ("pretrained" if local else "init"), config=config or {})
        made = requested(source, Texts(text, samples, length), variants=variants)
        assert made is not None  # only an optional one is None
        yield made


def residuals_of(
    given: Any,
    *,
    samples: int,
    norm: str,
    length: int = 128,
    text: str = "topics",
    phase: str | None = None,
    variants: tuple[str, ...] | None = None,
    seeds: int = 1,
    config: dict[str, Any] | None = None,
) -> dict[str, list[float]]:
    """Variant -> relative residual by layer, means over seeds and samples."""
    from rankfall.pretrained.profile import profile

    with request(given, samples, length, text, phase, variants, config) as made:
        rows = profile(made, range(seeds), norms=(norm,), best_samples=0, spectrum_samples=0, say=lambda line: None)
    found: dict[str, dict[int, list[float]]] = {}
    for row in rows:
        found.setdefault(row["variant"], {}).setdefault(row["layer"], []).append(row["value"])
    return {name: [sum(values) / len(values) for _, values in sorted(by.items())] for name, by in found.items()}


def law_rows(
    given: Any,
    *,
    samples: int,
    variant: str = "SAN",
    length: int = 128,
    text: str = "topics",
    phase: str | None = None,
    seed: int = 0,
    config: dict[str, Any] | None = None,
) -> list[dict[str, Any]]:
    """The rows of `model_law` of one variant; none for models whose layers are not plain post-norm attention."""
    from rankfall.pretrained.theory import law

    with request(given, samples, length, text, phase, (variant,), config) as made:
        return law(made, [seed], samples)
