"""Update the numbers and pictures of documentation pages from the results of a run, or list those that differ."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rankfall.report.numbers import Run

NUMBERS, IMAGES = Path("docs/numbers.yaml"), Path("docs/images")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--results", type=Path, help="results folder of the default run (default results)")
    parser.add_argument(
        "--from",
        dest="others",
        metavar="RUN=DIR",
        action="append",
        default=[],
        help="folder of the tables of another run that docs/numbers.yaml names; numbers of a run without one are kept",
    )
    parser.add_argument("--check", action="store_true", help="write nothing; status 1 if a number or picture differs")
    parser.add_argument("pages", nargs="*", type=Path, help="Markdown files; default README.md and those of docs/")


def run(args: argparse.Namespace) -> int:
    from rankfall.disk import atomic
    from rankfall.errors import RankfallError
    from rankfall.report.numbers import read, write_processor
    from rankfall.report.pages import is_computed_elsewhere, of_other_runs, problems, render
    from rankfall.report.values import Tables

    numbers = read(NUMBERS)
    tables = Tables(_folders(args, numbers.runs))
    different = failed = near = 0
    for page in args.pages or [Path("README.md"), *sorted(Path("docs").rglob("*.md"))]:
        if not page.is_file():
            raise RankfallError(
                f"there is no page {page}: name Markdown files, or none for README.md and those of docs/"
            )
        text = page.read_text()
        for problem in problems(text, numbers):
            raise RankfallError(f"{page}: {problem}")
        page_now = render(text, numbers, tables)
        different += len(page_now.changed)
        failed += len(page_now.failed)
        near += len(page_now.near)
        for line in (*map(str, page_now.changed), *page_now.failed, *page_now.kept, *of_other_runs(text, numbers)):
            print(f"{page}: {line}")
        for one in page_now.near:
            print(f"{page}: {one}: within its spread, on another kind of processor")
        if page_now.text != text and not args.check:
            with atomic(page) as handle:
                handle.write(page_now.text.encode())
    for name, quoted in numbers.pictures.items() if not args.pages else ():
        drawn, image = tables.picture(quoted), IMAGES / name
        if drawn is None:
            print(f"{image}: kept as it is: of the run {quoted.run} there is no figure {quoted.figure} here")
        elif not image.is_file() or image.read_bytes() != drawn.read_bytes():
            elsewhere = is_computed_elsewhere(quoted.run, numbers, tables)
            near, different = near + elsewhere, different + (not elsewhere)
            print(f"{image}: differs from {drawn}" + ", drawn of another kind of processor" * elsewhere)
            if not args.check:
                with atomic(image) as handle:
                    handle.write(drawn.read_bytes())
    for name in numbers.runs if not (args.check or args.pages) else ():
        if name in tables.runs and tables.kinds(name):
            write_processor(NUMBERS, name, tables.kinds(name))
    if args.check:
        more = f", {near} more agree within their spread, which are of another kind of processor" * (near > 0)
        print(f"{different} differ{more}" + f", {failed} cannot be computed" * (failed > 0))
    else:
        print(f"{different + near} written anew" + f", {failed} cannot be computed" * (failed > 0))
    return int(failed > 0 or (args.check and different > 0))


def _folders(args: argparse.Namespace, runs: "dict[str, Run]") -> dict[str, Path]:
    from rankfall.errors import RankfallError

    folders = {"default": args.results / "tables"} if args.results else {}
    for given in args.others:
        name, separator, folder = given.partition("=")
        if not separator or name not in runs:
            raise RankfallError(f"--from {given!r}: write RUN=DIR, with a run of {NUMBERS} ({', '.join(runs)})")
        folders[name] = Path(folder)
    for name, folder in folders.items():
        if not folder.is_dir():
            raise RankfallError(f"run {name}: there is no folder {folder}; `{runs[name].command}` makes it")
    own = {name: Path(about.tables) for name, about in runs.items() if Path(about.tables).is_dir()}
    return own | folders
