"""Update the numbers and pictures of documentation pages from the results of a run, or list those that differ.

A page has a number between `<!--=NAME-->` and `<!--/-->`, and a table between `<!-- table: NAME -->` and `<!-- /table -->`. Text between
`<!-- run: NAME -->` and `<!-- /run -->` is from another run, whose command the file has.
"""

import argparse
import re
from collections import Counter
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rankfall.report.doc_numbers import Definitions, Quotations, Run

NUMBER = re.compile(r"<!--=(\w+)-->([^\n]*?)<!--/-->")
TABLE = re.compile(r"<!-- table: (\w+) -->\n\n(.*?)\n<!-- /table -->", re.DOTALL)
RUN = re.compile(r"<!-- run: (\w+) -->(.*?)<!-- /run -->", re.DOTALL)

NUMBERS, IMAGES = Path("docs/numbers.yaml"), Path("docs/images")

ARGUMENTS = """
--results FOLDER   results folder of the default run (default results)
--from RUN=DIR     folder of the tables of another run that docs/numbers.yaml names; numbers of a run without one are kept
                   (repeatable)
--check            write nothing; status 1 if a number or picture differs
[FILE...]          Markdown files; default README.md and those of docs/
"""


def run(args: argparse.Namespace) -> int:
    from rankfall.disk import write
    from rankfall.report.doc_numbers import Quotations, read_definitions

    defined = read_definitions(NUMBERS)
    quoted = Quotations(defined, find_folders(args, defined.runs))
    different = 0
    for page in args.file or [Path("README.md"), *sorted(Path("docs").rglob("*.md"))]:
        text = page.read_text()
        check_page(text, defined)
        current, differences, kept = rewrite_page(text, quoted)
        for origin in (defined.runs[name] for name in dict.fromkeys(name for name, _ in RUN.findall(text))):
            kept.append(f"a part is of `{origin.command}`, written {origin.date} ({origin.commit}), and kept")
        for line in (*differences, *kept):
            print(f"{page}: {line}")
        different += len(differences)
        if current != text and not args.check:
            write(page, current)
    for name, picture in defined.pictures.items() if not args.file else ():
        figure, image = quoted.picture(picture), IMAGES / name
        if not figure.is_file():
            print(f"{image} is kept: the run {picture.run} has no figure {picture.figure} here")
        elif not image.is_file() or image.read_bytes() != figure.read_bytes():
            print(f"{image}: differs from {figure}")
            different += 1
            if not args.check:
                write(image, figure.read_bytes())
    print(f"{different} {'differ' if args.check else 'written anew'}")
    return int(args.check and different > 0)


def find_folders(args: argparse.Namespace, runs: "dict[str, Run]") -> dict[str, Path]:
    """Return the folders of tables of runs: those of the command line, and those of the checkout that exist."""
    from rankfall.errors import RankfallError

    named = dict(option.partition("=")[::2] for option in vars(args)["from"])
    named |= {"default": args.results / "tables"} if args.results else {}
    for name, folder in named.items():
        if name not in runs or not folder:
            raise RankfallError(f"--from {name}={folder}: write RUN=DIR, with a run of {NUMBERS} ({', '.join(runs)})")
        if not Path(folder).is_dir():
            raise RankfallError(f"run {name}: there is no folder {folder}; `{runs[name].command}` makes it")
    folders = {name: Path(named.get(name, declared.tables)) for name, declared in runs.items()}
    return {name: folder for name, folder in folders.items() if folder.is_dir()}


def check_page(text: str, defined: "Definitions") -> None:
    """Raise an error for markers without an end, and for names that the file of numbers does not have."""
    from rankfall.errors import RankfallError, suggest

    markers = (
        (NUMBER, "<!--=", defined.numbers),
        (TABLE, "<!-- table:", defined.tables),
        (RUN, "<!-- run:", defined.runs),
    )
    for pattern, opening, defined_names in markers:
        names = [name for name, _ in pattern.findall(text)]
        if len(names) != text.count(opening):
            raise RankfallError(f"a marker {opening} has no end, or an end in another line")
        for name in set(names) - defined_names.keys():
            raise RankfallError(f"docs/numbers.yaml does not define {name!r}{suggest(name, defined_names)}")


def rewrite_page(text: str, quoted: "Quotations") -> tuple[str, list[str], list[str]]:
    """Return a page with its numbers from the available tables, a line for each number that differs, and a line for each reason for which
    numbers are kept."""
    from rankfall.errors import RankfallError

    differing: list[str] = []
    kept: Counter[str] = Counter()

    def replace_number(match: re.Match[str]) -> str:
        """Return a number with its marker, kept if the tables explain the difference."""
        number = quoted.defined.numbers[match[1]]
        try:
            current = quoted.write(number)
            if not quoted.agrees(number, match[2], current):
                differing.append(f"{match[1]}: the page says {match[2]!r}, the tables {current!r}")
        except RankfallError as error:
            kept[str(error)] += 1
            return match[0]
        return f"<!--={match[1]}-->{current}<!--/-->"

    def replace_table(match: re.Match[str]) -> str:
        try:
            current = quoted.write_table(match[1])
        except RankfallError as error:
            kept[str(error)] += 1
            return match[0]
        for old, line in zip_longest(match[2].splitlines(), current.splitlines(), fillvalue=""):
            if old != line:
                differing.append(f"table {match[1]}: the page says {old!r}, the tables {line!r}")
        return f"<!-- table: {match[1]} -->\n\n{current}\n<!-- /table -->"

    rewritten = TABLE.sub(replace_table, NUMBER.sub(replace_number, text))
    return rewritten, differing, [f"{count} numbers and tables are kept: {why}" for why, count in kept.items()]
