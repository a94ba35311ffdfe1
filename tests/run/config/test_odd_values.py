"""Guards against tracebacks from a configuration: an odd value, wherever it stands, is fine or refused in one line."""

import datetime
from collections.abc import Iterator
from typing import Any

import pytest
from plans import VALID, changed, refusal

from rankfall.errors import RankfallError
from rankfall.run.plan import make_plan

ODD: list[Any] = [
    None,
    True,
    float("nan"),
    "",
    [],
    [None],
    ["x"],
    [[1]],
    {},
    {1: 2},
    {"name": 1},
    {"name": "softmax", "options": 3},
    datetime.date(2020, 1, 1),
    b"x",
]


def places(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The way to everything that is in a configuration."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield (*path, str(key))
        yield from places(item, (*path, str(key)))


def said(config: dict[str, Any]) -> str:
    try:
        make_plan(config)
    except RankfallError as error:
        return str(error)
    return ""


@pytest.mark.long
def test_odd_values_anywhere_are_told_in_one_line() -> None:
    """No traceback, whatever stands wherever; that a value is refused is for the cases above to say."""
    extra = {"exclude": [{"depth": 4, "seed": 1}], "training.lr": [1e-3], "task.length": [5]}
    config = changed("grid", [{**VALID["grid"][0], **extra}], changed("compute", {"threads": 1, "device": "cpu"}))
    config["architectures"]["full"] |= {"base": "san", "embedding": {"name": "token", "frozen": 0}}
    config["trainings"]["short"] |= {"schedule": "constant", "optimizer": "adam", "clip": 1.0}
    config |= {"measures": {"paths": {"counts": [2], "cells": {"seed": 0}}}, "figures": {"paths": {"columns": 3}}}
    make_plan(config)
    for place in places(config):
        for value in ODD:
            message = said(changed("/".join(place), value, config))
            assert "\n" not in message and "should" not in message, (place, value)


REFUSED_OPTIONS = {
    "heads that do not divide": ("orders", {"heads": [1, 3]}, "heads: 3 heads do not divide the width 8; allowed: 1, 2, 4, 8; or choose"),
    "no heads": ("orders", {"heads": [0]}, "heads: 0 is out of range; allowed: >= 1"),
    "no numbers of heads": ("orders", {"heads": []}, "heads: [] has no entries; name some, or leave the key out for its default"),
    "a width for the heads": ("orders", {"width": 7}, "width: 7 is not divisible by its 2 heads; choose `heads` too"),
    "heads of a claim": ("deep_norm", {"heads": 3}, "heads: 3 heads do not divide the width 32; allowed: 1, 2, 4, 8, 16, 32"),
    "tokens": ("probe", {"tokens": 0}, "tokens: 0 is out of range; allowed: >= 1"),
    "negative": ("probe", {"tokens": -1}, "tokens: -1 is out of range"),
    "text": ("probe", {"tokens": "32"}, "tokens: '32' is text, not an integer; take the quotes away"),
    "no seeds": ("affine_rank", {"seeds": 0}, "seeds: 0 is out of range; allowed: >= 1"),
    "heads twice": ("orders", {"heads": [1, 2, 1]}, "heads: 1 is there twice; take one out"),
    "a part twice": ("probe", {"masks": [{"name": "local", "window": 1}] * 2}, "'window': 1} is there twice; take one out"),
    "no layers": ("lazy_branches", {"layers": []}, "layers: [] has no entries"),
    "no samples": ("law", {"samples": 0}, "samples: 0 is out of range"),
    "a limit that was computed": ("token_identity", {"sentences": 5}, "sentences: 5 is out of range; allowed: >= 6"),
    "beside it": ("token_identity", {"batch": 0}, "batch: 0 is out of range"),
    "a rate backwards": ("model_token_identity", {"model": "minilm", "lr": -0.1}, "lr: -0.1 is out of range; allowed: >= 0"),
    "a norm": ("residuals", {"norms": ["compositt"]}, "norms.0: 'compositt' is not possible; allowed: composite,"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED_OPTIONS)
def test_options_of_measures_that_cannot_work(case: str) -> None:
    measure, options, what = REFUSED_OPTIONS[case]
    said = refusal(changed("measures", {"one": {"measure": measure, **options}}))
    assert said.startswith("measures.one.") and what in said, said
