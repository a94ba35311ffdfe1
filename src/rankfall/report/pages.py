"""Numbers in pages: between two comments, `<!--=NAME-->4<!--/-->`, by the name that `docs/numbers.yaml` has for it; whole tables between
`<!-- table: NAME -->` and `<!-- /table -->`.

What stands between `<!-- run: NAME -->` and `<!-- /run -->` is from another run than the default one; the file has its command, and the
commit and the day of the text.
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
    near: tuple[Rewritten, ...]  # changed too, but on another kind of processor and within the number's spread
    kept: tuple[str, ...]
    failed: tuple[str, ...]  # tables are there, and yet the number cannot be computed


def render(text: str, numbers: Numbers, tables: Tables) -> Page:
    """The page with all its numbers from the tables at hand."""
    changed: list[Rewritten] = []
    near: list[Rewritten] = []
    kept: dict[str, int] = {}
    failed: list[str] = []

    def now(needs: tuple[str, ...], write: Callable[[], str]) -> str | None:
        """A number or table by its tables; None where it is kept, and why is noted."""
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
    """Whether tables are from another kind of processor than what the pages say; not where one of the two is not known."""
    said, now = numbers.runs[run].processor, tables.kinds(run)
    return bool(said and now and said != now)


def _differences(name: str, said: str, new: str) -> Iterator[Rewritten]:
    """The lines of a table that are not what they were; a line that only one has is compared with nothing."""
    for old, line in zip_longest(said.splitlines(), new.splitlines(), fillvalue=""):
        if old != line:
            yield Rewritten(f"table {name}", old, line)


def problems(text: str, numbers: Numbers) -> Iterator[str]:
    """Markers of a page that cannot be read, and names that the file does not have."""
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
    """One line for each run that a part of the page is from: how many numbers stand there by hand, and what made them."""
    counted: dict[str, int] = {}
    for name, part in RUN.findall(text):
        counted[name] = counted.get(name, 0) + len(find_typed(part))
    for name, count in counted.items():
        about = numbers.runs[name]
        yield f"{count or 'some'} numbers are of `{about.command}`, written {about.date} ({about.commit}), and kept as they are"


def find_typed(text: str) -> list[str]:
    """Decimals and percentages that no marker has: what a reader takes for a result. Code and comments are left out."""
    written = TABLE.sub(" ", NUMBER.sub(" ", text))
    return TYPED.findall(re.sub(r"```.*?```|`[^`]*`|<!--.*?-->", " ", written, flags=re.DOTALL))
