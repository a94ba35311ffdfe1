"""Update the numbers and pictures of documentation pages from the results of a run, or list those that differ."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rankfall.report.doc_numbers import Run

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
    from rankfall.report.doc_numbers import RUN, Quotations, check_page, read_definitions, rewrite_page

    defined = read_definitions(NUMBERS)
    quoted = Quotations(defined, find_folders(args, defined.runs))
    different = 0
    for page in args.pages or [Path("README.md"), *sorted(Path("docs").rglob("*.md"))]:
        text = page.read_text()
        check_page(text, defined)
        now, differing, kept = rewrite_page(text, quoted)
        others = [
            f"a part is of `{about.command}`, written {about.date} ({about.commit}), and kept"
            for about in (defined.runs[name] for name in dict.fromkeys(name for name, _ in RUN.findall(text)))
        ]
        for line in (*differing, *kept, *others):
            print(f"{page}: {line}")
        different += len(differing)
        if now != text and not args.check:
            with atomic(page) as handle:
                handle.write(now.encode())
    for name, picture in defined.pictures.items() if not args.pages else ():
        drawn, image = quoted.picture(picture), IMAGES / name
        if drawn is None:
            print(f"{image} is kept: the run {picture.run} has no figure {picture.figure} here")
        elif not image.is_file() or image.read_bytes() != drawn.read_bytes():
            print(f"{image}: differs from {drawn}")
            different += 1
            if not args.check:
                with atomic(image) as handle:
                    handle.write(drawn.read_bytes())
    print(f"{different} {'differ' if args.check else 'written anew'}")
    return int(args.check and different > 0)


def find_folders(args: argparse.Namespace, runs: "dict[str, Run]") -> dict[str, Path]:
    """Return the folders of tables of runs: those of the command line, and those of the checkout that exist."""
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
    return {name: path for name, about in runs.items() if (path := Path(about.tables)).is_dir()} | folders
