"""Numbers in documentation pages. A number is between two comments with its name in `docs/numbers.yaml`, `<!--=NAME-->4<!--/-->`, and a
table between `<!-- table: NAME -->` and `<!-- /table -->`.

Text between `<!-- run: NAME -->` and `<!-- /run -->` is from another run than the default one; the file has its command, and the commit and
date of the text.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import zip_longest

from rankfall.errors import RankfallError
from rankfall.report.numbers import Numbers
from rankfall.report.values import Tables, agrees, lacks, write_number, write_table

NUMBER = re.compile(r"<!--=(\w+)-->([^\n]*?)<!--/-->")
TABLE = re.compile(r"<!-- table: (\w+) -->\n\n(.*?)\n<!-- /table -->", re.DOTALL)
RUN = re.compile(r"<!-- run: (\w+) -->(.*?)<!-- /run -->", re.DOTALL)
TYPED = re.compile(r"(?<![\w.])\d*\.\d+(?!\.\d)|\d+ ?%")


@dataclass(frozen=True)
class Rewritten:
    """A number on a page that differs from its tables."""

    name: str
    written: str
    found: str

    def __str__(self) -> str:
        return f"{self.name}: the page says {self.written!r}, the tables {self.found!r}"


@dataclass(frozen=True)
class Page:
    """A page with its numbers from the available tables, the changes, and the numbers that were kept or could not be computed."""

    text: str
    changed: tuple[Rewritten, ...]
    near: tuple[Rewritten, ...]  # changed within the number's spread, on another kind of processor
    kept: tuple[str, ...]
    failed: tuple[str, ...]  # numbers that cannot be computed although their tables exist


def render(text: str, numbers: Numbers, tables: Tables) -> Page:
    """Return the page with all its numbers from the available tables."""
    changed: list[Rewritten] = []
    near: list[Rewritten] = []
    kept: dict[str, int] = {}
    failed: list[str] = []

    def now(needs: tuple[str, ...], write: Callable[[], str]) -> str | None:
        """Write a number or table from its tables; if it has to be kept, record the reason and return None."""
        run, lacking = next((found for name in needs if (found := lacks(name, numbers, tables))[1]), ("", ""))
        if lacking:
            reason = f"kept: the run {run} has no {lacking}"
            kept[reason] = kept.get(reason, 0) + len(needs)
            return None
        try:
            return write()
        except RankfallError as error:
            failed.append(f"kept as it is: {error}")
            return None

    def replace(found: re.Match[str]) -> str:
        name, said = found[1], found[2]
        new = now((name,), lambda: write_number(name, numbers, tables))
        if new is None:
            return found[0]
        if new != said:
            run, _ = lacks(name, numbers, tables)
            elsewhere = is_computed_elsewhere(run, numbers, tables) and agrees(name, said, numbers, tables)
            (near if elsewhere else changed).append(Rewritten(name, said, new))
        return f"<!--={name}-->{new}<!--/-->"

    def replaced_table(found: re.Match[str]) -> str:
        name, said = found[1], found[2]
        needs = tuple(cell for row in numbers.page_tables[name].cells for cell in row)
        new = now(needs, lambda: write_table(name, numbers, tables))
        if new is None:
            return found[0]
        changed.extend(_differences(name, said, new))
        return f"<!-- table: {name} -->\n\n{new}\n<!-- /table -->"

    new = TABLE.sub(replaced_table, NUMBER.sub(replace, text))
    reasons = tuple(f"{count} number{'s' * (count != 1)} {reason}" for reason, count in kept.items())
    return Page(new, tuple(changed), tuple(near), reasons, tuple(dict.fromkeys(failed)))


def is_computed_elsewhere(run: str, numbers: Numbers, tables: Tables) -> bool:
    """Return whether the tables and the pages' numbers are from different kinds of processors; False if one of the two is unknown."""
    said, now = numbers.runs[run].processor, tables.kinds(run)
    return bool(said and now and said != now)


def _differences(name: str, said: str, new: str) -> Iterator[Rewritten]:
    """Yield the lines in which two tables differ; a line that only one of them has is compared with an empty text."""
    for old, line in zip_longest(said.splitlines(), new.splitlines(), fillvalue=""):
        if old != line:
            yield Rewritten(f"table {name}", old, line)


def problems(text: str, numbers: Numbers) -> Iterator[str]:
    """Yield errors for markers of a page that cannot be parsed, and for names that the file of numbers does not have."""
    found = NUMBER.findall(text)
    if len(found) != text.count("<!--="):
        yield "a number begins with <!--=NAME--> and has no <!--/--> in its line"
    for name, _ in found:
        if name not in numbers.numbers:
            yield f"there is no number {name!r} in docs/numbers.yaml"
    tables = TABLE.findall(text)
    if not text.count("<!-- table:") == text.count("<!-- /table -->") == len(tables):
        yield "each <!-- table: NAME --> has one <!-- /table -->, each with an empty line to the table between them"
    for name, _ in tables:
        if name not in numbers.page_tables:
            yield f"there is no table {name!r} in docs/numbers.yaml"
    opened, closed, runs = text.count("<!-- run:"), text.count("<!-- /run -->"), RUN.findall(text)
    if not opened == closed == len(runs):
        yield "each <!-- run: NAME --> has one <!-- /run -->, and none is inside another"
    for name, _ in runs:
        if name not in numbers.runs:
            yield f"there is no run {name!r} in docs/numbers.yaml"


def of_other_runs(text: str, numbers: Numbers) -> Iterator[str]:
    """Yield a line for each other run of a page: how many numbers its parts contain by hand, and the command that computed them."""
    counted: dict[str, int] = {}
    for name, part in RUN.findall(text):
        counted[name] = counted.get(name, 0) + len(find_typed(part))
    for name, count in counted.items():
        about = numbers.runs[name]
        yield f"{count or 'some'} numbers are of `{about.command}`, written {about.date} ({about.commit}), and kept as they are"


def find_typed(text: str) -> list[str]:
    """Return the decimals and percentages outside of markers, which a reader takes for results. Code and comments are ignored."""
    written = TABLE.sub(" ", NUMBER.sub(" ", text))
    return TYPED.findall(re.sub(r"```.*?```|`[^`]*`|<!--.*?-->", " ", written, flags=re.DOTALL))
