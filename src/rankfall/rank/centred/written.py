"""Centred forms that a user writes beside a normaliser: a function `sharp_centred` beside `sharp`, or a method `centred` of its class.

Such a form takes the parts of the scores (`scores.py`) and the normaliser's options, and returns `Weights` (`weights.py`). Before it is
used, it is tested on rows that differ enough for subtraction to be precise.
"""

import inspect
import math
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from torch import Tensor

from rankfall.rank.centred.assumptions import Unknown, unbound
from rankfall.rank.centred.scaled import Scaled, plain
from rankfall.rank.centred.scores import Scores
from rankfall.rank.centred.weights import Weights

NEAR = math.log(1e-3)  # log size of a query's or key's part of a score in the test; a pair's part has twice this log
DIGITS = 1e-5  # relative tolerance of the differences in the test


def find_written_rule(normaliser: Any) -> Callable[[Scores], Weights] | None:
    """Return the rule written beside a normaliser, with its options bound, or None if there is none."""
    if hasattr(type(normaliser), "centred"):
        rule: Callable[[Scores], Weights] = normaliser.centred
        return rule
    function, options = unbound(normaliser)
    if not inspect.isfunction(function):
        return None
    beside = getattr(sys.modules.get(function.__module__), f"{function.__name__}_centred", None)
    return None if beside is None else partial(beside, **options)


def check_rule(rule: Callable[[Scores], Weights], f: Callable[[Tensor], Tensor], s: Scores, name: str) -> None:
    """Raise `Unknown` unless a rule agrees with subtraction on the differences of rows of f and of their sums."""
    trial = replace(s, key=at(s.key, NEAR), query=at(s.query, NEAR), both=at(s.both, 2 * NEAR))
    p = f(trial.base + trial.key.value() + trial.query.value() + trial.both.value())
    found = rule(trial)
    sums = plain(p.sum(-1, keepdim=True) * 0) if found.sums is None else found.sums
    for wanted, got in ((p, found.rows), (p.sum(-1, keepdim=True), sums)):
        apart, given = (x - x.mean(-2, keepdim=True) for x in (wanted, got.value()))
        allowed = DIGITS * apart.abs().flatten(1).amax(1) + 1e-13 * p.abs().flatten(1).amax(1)  # (K,)
        if given.shape != apart.shape or bool(((given - apart).abs().flatten(1).amax(1) > allowed).any()):
            raise Unknown(f"the centred form beside {name} does not agree with {name}: no centred form")


def at(x: Scaled, log: float) -> Scaled:
    """Return the same direction at another scale; zeros stay zero."""
    return Scaled(x.unit, x.log.clamp(log, log).where(x.log.isfinite(), x.log))
