"""Normalisers that count their calls, each in another place."""

import functools
import itertools
import types
from collections.abc import Callable

import mylab_helper
import numpy as np
import torch
from torch import Tensor, nn

from rankfall.nets.primitives import Sizes

BOX = {"calls": 0}
TOTAL = torch.zeros(())
ARRAY = np.zeros(1)
COUNT = itertools.count()
NAMES = types.SimpleNamespace(calls=0)
NESTED = {"a": [0]}


def late(calls: int, logits: Tensor) -> Tensor:
    return logits.softmax(-1) if calls < 1000 else logits.sigmoid()


def value_of_dictionary(logits: Tensor) -> Tensor:
    BOX["calls"] += 1
    return late(BOX["calls"], logits)


def tensor(logits: Tensor) -> Tensor:
    TOTAL.add_(1)
    return late(int(TOTAL), logits)


def array(logits: Tensor) -> Tensor:
    ARRAY[0] += 1
    return late(int(ARRAY[0]), logits)


def count(logits: Tensor) -> Tensor:
    return late(next(COUNT), logits)


def namespace(logits: Tensor) -> Tensor:
    NAMES.calls += 1
    return late(NAMES.calls, logits)


def nested(logits: Tensor) -> Tensor:
    NESTED["a"][0] += 1
    return late(NESTED["a"][0], logits)


def _note() -> int:
    vars(_note)["calls"] = vars(_note).get("calls", 0) + 1
    return int(vars(_note)["calls"])


def attribute(logits: Tensor) -> Tensor:
    return late(_note(), logits)


def default(logits: Tensor, seen: list[int] = [0]) -> Tensor:  # noqa: B006
    seen[0] += 1
    return late(seen[0], logits)


def _closure() -> Callable[[Tensor], Tensor]:
    calls = 0

    def inner(logits: Tensor) -> Tensor:
        nonlocal calls
        calls += 1
        return late(calls, logits)

    return inner


_inner = _closure()


def closure(logits: Tensor) -> Tensor:
    return _inner(logits)


@functools.lru_cache
def _table(length: int) -> Tensor:
    return torch.zeros(length)


def table(logits: Tensor) -> Tensor:
    kept = _table(logits.shape[-1])
    kept += 1
    return late(int(kept[0]), logits)


def other_file(logits: Tensor) -> Tensor:
    mylab_helper.CALLS += 1
    return late(mylab_helper.CALLS, logits)


class Held(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.box = types.SimpleNamespace(calls=0)

    def forward(self, logits: Tensor) -> Tensor:
        self.box.calls += 1
        return late(self.box.calls, logits)


class OfTheClass(nn.Module):
    calls = {"n": 0}  # noqa: RUF012

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()

    def forward(self, logits: Tensor) -> Tensor:
        self.calls["n"] += 1
        return late(self.calls["n"], logits)
