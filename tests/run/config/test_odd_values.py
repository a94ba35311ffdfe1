"""Guards against tracebacks from a configuration: an odd value, wherever it stands, is fine or refused in one line."""

import datetime
from collections.abc import Iterator
from typing import Any

import pytest
from plans import VALID, changed

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
