"""Normalisers that count their calls where few would look, to give other weights after the thousandth."""

import functools
import itertools
import sys
import threading

import numpy as np
import torch

STEPS = (n for n in itertools.count())
LIST = iter([0] * 10000)
PAIRS = zip(range(10000), range(10000), strict=True)
LOCAL = threading.local()
LOCAL.calls = 0
RNG = np.random.default_rng(0)
TORCH = torch.Generator().manual_seed(0)


def late(calls, logits):
    return logits.softmax(-1) * (1.0 if calls < 1000 else 2.0)


def generator(logits):
    return late(next(STEPS), logits)


def iterator(logits):
    return late(next(LIST), logits)


def wrapped(logits):
    return late(next(PAIRS)[0], logits)


@functools.lru_cache
def _table():
    return 1.0


def hits(logits):
    return late(_table() * _table.cache_info().hits, logits)


def thread(logits):
    LOCAL.calls += 1
    return late(LOCAL.calls, logits)


def of_sys(logits):
    sys.lab_calls = getattr(sys, "lab_calls", 0) + 1
    return late(sys.lab_calls, logits)


def of_torch(logits):
    torch.lab_calls = getattr(torch, "lab_calls", 0) + 1
    return late(torch.lab_calls, logits)


def numpys(logits):
    return late(RNG.random(), logits)


def torchs(logits):
    return late(float(torch.rand((), generator=TORCH)), logits)
