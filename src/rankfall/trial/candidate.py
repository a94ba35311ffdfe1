"""A component on trial: loaded, called and timed here, and refused in two lines: what is wrong where, and the likely fix."""

import os
import time
import traceback
from collections.abc import Callable, Mapping
from functools import partial
from inspect import isclass
from pathlib import Path
from typing import Any, Protocol

from rankfall import components
from rankfall.errors import RankfallError, describe_error
from rankfall.nets.primitives import Sizes
from rankfall.tasks._dataset import Dataset

Drawn = tuple[Dataset, int | None] | None  # data that a task has drawn already, and their seed


class Named(Protocol):
    """A component as a configuration names it."""

    @property
    def name(self) -> str: ...

    @property
    def options(self) -> Mapping[str, Any]: ...


class Refused(RankfallError):
    """A component is not what its kind must be. The message, for its author, is two lines: what was found, and the fix."""


class Candidate:
    def __init__(self, kind: str, component: Named, contract: str, drawn: Drawn = None) -> None:
        self.kind, self.component, self.contract, self.drawn = kind, component, contract, drawn
        self.calls, self.seconds = 0, 0.0
        self.location = components.locate(kind, component.name)
        assert self.location is not None, f"{kind} {component.name} was left open"
        self.facts = components.describe(kind, component.name).facts  # type: ignore[union-attr]

    def load(self) -> None:
        """Import the component."""
        try:
            self.found = components.load(self.kind, self.component.name)
        except Exception as error:  # whatever importing somebody's file may raise
            raise self.refusal(f"cannot be imported: {self.describe_error(error)}", "mend the file") from error

    @property
    def title(self) -> str:
        """Kind, name, file and function."""
        assert self.location is not None
        function = getattr(getattr(self, "found", None), "__name__", self.location.attributes[-1])
        return f"{self.kind} {self.component.name!r} ({short_path(self.location.file)}, {function})"

    def refusal(self, what: str, remedy: str) -> Refused:
        """The error in two lines; `what` continues the component's name, `remedy` says what to do."""
        return Refused(f"{self.title} {what}\n  fix: {remedy} (docs/components.md says what each kind is)")

    def refuse_kind(self, wanted: str) -> None:
        """Raise if it is a function where its kind is a class, or the reverse."""
        if wanted == "class" and not isclass(self.found):
            raise self.refusal("is a function where a class is needed", f"write {self.contract}")
        if wanted == "function" and isclass(self.found):
            raise self.refusal("is a class where a function is needed", f"write {self.contract}")

    def bound(self) -> Any:
        """A function with its options, or an instance of a class that is made of its options alone."""
        if not isclass(self.found):
            return partial(self.found, **self.component.options)
        return self.call(self.found, "made of its options", **self.component.options)

    def make(self, sizes: Sizes, sized: bool) -> Any:
        """As the network has it: a class, or any component of a kind that is `sized`, is given the sizes."""
        if not (sized or isclass(self.found)):
            return self.bound()
        return self.call(self.found, "made of sizes and its options", sizes, **self.component.options)

    def call(self, function: Callable[..., Any], told: str, *args: Any, **kwargs: Any) -> Any:
        """A call that is counted, timed, and refused if it raises; `told` says with what."""
        began = time.perf_counter()
        try:
            return function(*args, **kwargs)
        except Exception as error:  # anything a component may raise
            raise self.refusal(f"raises {self.describe_error(error)}, {told}", f"it must be {self.contract}") from error
        finally:
            self.calls += 1
            self.seconds += time.perf_counter() - began

    def describe_error(self, error: BaseException) -> str:
        """An error in a few words, with the line of the component's file that it comes from."""
        assert self.location is not None
        frames = [
            frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(self.location.file)
        ]
        line = f" (line {frames[-1].lineno})" if frames else ""
        return f"{describe_error(error)}{line}"


def short_path(file: Path) -> str:
    """As a person in the working directory would name it."""
    inside = file.is_relative_to(os.getcwd())
    return str(file.relative_to(os.getcwd()) if inside else file)
