"""Load, call and refuse one component. A refusal has two lines: what is wrong where, and the likely fix."""

import os
import time
import traceback
from collections.abc import Callable
from functools import partial
from inspect import isclass
from typing import Any

from rankfall import components
from rankfall.design import Component
from rankfall.errors import RankfallError, describe_error, frames_of_users
from rankfall.tasks._dataset import Dataset

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
