"""A component on trial: the sizes of the network for which it is tried, and how it is loaded, called and refused.

The sizes are those of a cell, with fewer tokens where they cost most. A refusal has two lines: what is wrong where, and the likely fix.
"""

import os
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from inspect import isclass
from typing import Any

from rankfall import components
from rankfall.design import Component
from rankfall.errors import RankfallError, describe_error, frames_of_users
from rankfall.nets.primitives import Sizes
from rankfall.tasks._dataset import Dataset

DEPTH = 2  # layers, which stand for any depth
MEMBERS = SAMPLES = 3  # a first with large numbers, a last to compare, and a neighbour of both
# `longest` cuts longer sequences to these limits, for all members and samples together, so that a trial takes milliseconds:
MOST_SCORES = 2**20  # numbers in the scores of all heads
MOST_PRODUCTS = 2**26  # products of tokens' features with a matrix
MOST_SYMBOLS = 100  # symbols of a vocabulary, or classes


@dataclass(frozen=True)
class Surroundings:
    """The facts about the surrounding network that a trial may depend on; `kinds.py` says which kind reads which."""

    width: int = 8
    heads: int = 2
    head_width: int = 4
    mlp_width: int = 16
    tokens: int = 6  # without sentinels
    sentinels: int = 0
    size_in: int = 5
    size_out: int = 3
    inputs: str = "vectors"  # or "tokens"
    masked: bool = True  # whether scores may be -inf
    trained: bool = True  # whether gradients are needed
    placement: str = "post"  # of the norms in a block
    mlp: bool = True  # whether the block has one
    epochs: int = 3

    @property
    def length(self) -> int:
        """Tokens in a sequence, sentinels included."""
        return self.tokens + self.sentinels

    def sizes(self, members: int) -> Sizes:
        """Return the sizes of a stack with so many members."""
        named = {f.name: getattr(self, f.name) for f in fields(Sizes) if hasattr(self, f.name)}
        return Sizes(**named | {"members": members, "depth": DEPTH, "layer": 1})


def longest(tokens: int, heads: int, width: int, mlp_width: int) -> int:
    """Return the number of tokens that a trial can compute in milliseconds: at most `tokens`, and two or more if there are two."""
    networks = MEMBERS * SAMPLES
    by_scores, by_products = (MOST_SCORES / (networks * heads)) ** 0.5, MOST_PRODUCTS / (networks * width * mlp_width)
    return min(tokens, max(2, int(min(by_scores, by_products))))


Drawn = tuple[Dataset, int | None] | None  # data that the task drew before its trial, and their seed


class Refused(RankfallError):
    """A component does not fulfil the contract of its kind. The message tells its author the fault and the fix, in two lines."""


class Candidate:
    """A component on trial. It counts and times its calls."""

    def __init__(self, kind: str, component: Component, contract: str, drawn: Drawn = None) -> None:
        self.kind, self.component, self.contract, self.drawn = kind, component, contract, drawn
        self.calls, self.seconds = 0, 0.0
        location, description = components.locate(kind, component.name), components.describe(kind, component.name)
        assert location is not None and description is not None, f"{kind} {component.name} was left open"
        self.file, self.function, self.facts = location.file, location.attributes[-1], description.facts

    def load(self) -> None:
        """Import the component."""
        try:
            self.loaded = components.load(self.kind, self.component.name)
        except Exception as error:  # importing somebody's file may raise anything
            raise self.refusal(f"cannot be imported: {self.describe_error(error)}", "mend the file") from error
        self.function = getattr(self.loaded, "__name__", self.function)

    @property
    def title(self) -> str:
        """Return kind, name, file and function. A file below the working directory has a relative path."""
        inside = self.file.is_relative_to(os.getcwd())
        file = self.file.relative_to(os.getcwd()) if inside else self.file
        return f"{self.kind} {self.component.name!r} ({file}, {self.function})"

    def refusal(self, fault: str, remedy: str) -> Refused:
        """Return the error; `fault` continues the component's name, `remedy` says what to do."""
        return Refused(f"{self.title} {fault}\n  fix: {remedy} (docs/components/ says what each kind is)")

    def bind_options(self) -> Any:
        """Return a function with its options bound, or an instance of a class that takes nothing but its options."""
        if not isclass(self.loaded):
            return partial(self.loaded, **self.component.options)
        return self.call(self.loaded, "made of its options", **self.component.options)

    def call(self, function: Callable[..., Any], when: str, *args: Any, **kwargs: Any) -> Any:
        """Call a function of the component, and refuse the component if it raises; `when` describes the call in the message."""
        began = time.perf_counter()
        try:
            return function(*args, **kwargs)
        except Exception as error:  # a component may raise anything
            raise self.refusal(f"raises {self.describe_error(error)}, {when}", self.remedy_of(error)) from error
        finally:
            self.calls += 1
            self.seconds += time.perf_counter() - began

    def remedy_of(self, error: BaseException) -> str:
        """Return what mends an error: the last line of the user's own code that it passed, or the contract if it passed none."""
        if frames := frames_of_users(error):
            return f"correct line {frames[-1].lineno} of {os.path.relpath(frames[-1].filename)}: {frames[-1].line}"
        return f"it must be {self.contract}"

    def describe_error(self, error: BaseException) -> str:
        """Describe an error in a few words, with the last line of the component's file that it passed."""
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == str(self.file)]
        return describe_error(error) + (f" (line {lines[-1]})" if lines else "")
