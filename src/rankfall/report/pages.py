"""Numbers in pages: between two comments, `<!--=NAME-->4<!--/-->`, by the name that `docs/numbers.yaml` has for it.

What stands between `<!-- run: NAME -->` and `<!-- /run -->` is from another run than the default one; the file has its command, and the
commit and the day of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rankfall.errors import RankfallError
from rankfall.report.numbers import Numbers, Tables, lacks, written

NUMBER = re.compile(r"<!--=(\w+)-->([^\n]*?)<!--/-->")
RUN = re.compile(r"<!-- run: (\w+) -->(.*?)<!-- /run -->", re.DOTALL)
TYPED = re.compile(r"(?<![\w.])\d*\.\d+(?!\.\d)|\d+ ?%")


@dataclass(frozen=True)
class Rewritten:
    """A number on a page that is not what its tables say."""

    name: str
    written: str
    found: str

    def __str__(self) -> str:
        return f"{self.name}: the page says {self.written!r}, the tables {self.found!r}"


@dataclass(frozen=True)
class Page:
    """A page with its numbers from the tables at hand, what that changed, and what could not be computed and is as it was."""

    text: str
    changed: tuple[Rewritten, ...]
    kept: tuple[str, ...]
    failed: tuple[str, ...]  # tables are there, and yet the number cannot be computed


def render(text: str, numbers: Numbers, tables: Tables) -> Page:
    """The page with all its numbers from the tables at hand."""
    changed: list[Rewritten] = []
    kept: dict[str, int] = {}
    failed: list[str] = []

    def replaced(found: re.Match[str]) -> str:
        name, said = found[1], found[2]
        run, lacking = lacks(name, numbers, tables)
        if lacking:
            reason = f"kept: the run {run} has no {lacking}"
            kept[reason] = kept.get(reason, 0) + 1
            return found[0]
        try:
            new = written(name, numbers, tables)
        except RankfallError as error:
            failed.append(f"kept as it is: {error}")
            return found[0]
        if new != said:
            changed.append(Rewritten(name, said, new))
        return f"<!--={name}-->{new}<!--/-->"

    new = NUMBER.sub(replaced, text)
    reasons = tuple(f"{count} number{'s' * (count != 1)} {reason}" for reason, count in kept.items())
    return Page(new, tuple(changed), reasons, tuple(dict.fromkeys(failed)))


def problems(text: str, numbers: Numbers) -> Iterator[str]:
    """Markers of a page that cannot be read, and names that the file does not have."""
    found = NUMBER.findall(text)
    if len(found) != text.count("<!--="):
        yield "a number begins with <!--=NAME--> and has no <!--/--> in its line"
    for name, _ in found:
        if name not in numbers.numbers:
            yield f"there is no number {name!r} in docs/numbers.yaml"
    opened, closed, runs = text.count("<!-- run:"), text.count("<!-- /run -->"), RUN.findall(text)
    if not opened == closed == len(runs):
        yield "each <!-- run: NAME --> has one <!-- /run -->, and none is inside another"
    for name, _ in runs:
        if name not in numbers.runs:
            yield f"there is no run {name!r} in docs/numbers.yaml"


def of_other_runs(text: str, numbers: Numbers) -> Iterator[str]:
    """One line for each run that a part of the page is from: how many numbers stand there by hand, and what made them."""
    counted: dict[str, int] = {}
    for name, part in RUN.findall(text):
        counted[name] = counted.get(name, 0) + len(typed(part))
    for name, count in counted.items():
        about = numbers.runs[name]
        yield f"{count or 'some'} numbers are of `{about.command}`, written {about.date} ({about.commit}), and kept as they are"


def typed(text: str) -> list[str]:
    """Decimals and percentages that no marker has: what a reader takes for a result. Code and comments are left out."""
    return TYPED.findall(re.sub(r"```.*?```|`[^`]*`|<!--.*?-->", " ", NUMBER.sub(" ", text), flags=re.DOTALL))
