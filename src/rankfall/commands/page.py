"""Write the page of a run: findings, scorecard, charts and tables in one HTML file that opens from disk."""

import argparse
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankfall.commands import _planned

if TYPE_CHECKING:
    from rankfall.run.plan import Plan

NOT_MADE = "something that it is made from could not be made"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _planned.add_arguments(parser)
    parser.add_argument("--out", type=Path, help="page to write, by default report/index.html of the results")


def run(args: argparse.Namespace) -> int:
    own = _planned.make_plan(args)
    made = own.check(own.fingerprints.page(), "page")
    own.check_tables(own.fingerprints.tables)
    size = write(own, own.fingerprints.tables, own.plan.figures, made, args.out)
    print(f"{args.out or own.outputs.page}: {size / 1e6:.1f} MB")
    return 0


def write(
    own: _planned.Planned,
    names: Sequence[str],
    figures: Iterable[str],
    made: Mapping[str, str],
    out: Path | None = None,
    lacks: Mapping[str, str] | None = None,
) -> int:
    """Write the page of these tables and figures, and return its number of characters."""
    from rankfall import __version__
    from rankfall.disk import atomic
    from rankfall.errors import RankfallError
    from rankfall.report import tables
    from rankfall.report.looks import looks
    from rankfall.report.page.build import Given, page

    out = out or Path(own.outputs.page)
    captions = {name: caption(Path(own.outputs.caption(name))) for name in sorted(figures)}
    given = Given(
        own.plan.config.name,
        names,
        lambda name: tables.read_frame(Path(own.outputs.table(name)), name),
        read_provenances(own.plan, own.results),
        {name: text for name, text in captions.items() if text is not None},
        made,
        __version__,
        lacks or {},
        links_from(out.parent),
    )
    try:
        with looks(own.plan.labels, own.plan.colours):
            text = page(given)
    except ModuleNotFoundError as error:
        raise RankfallError(f"the page needs {error.name}: pip install 'rankfall[page]'") from error
    out.parent.mkdir(parents=True, exist_ok=True)
    with atomic(out) as file:
        file.write(text.encode())
    return len(text)


def write_incomplete(own: _planned.Planned, failed: Mapping[str, str]) -> dict[str, str]:
    """Write the page of the tables and figures that are up to date after a run in which jobs failed, and return what it lacks -> why.

    `failed`: first file of a job -> its error. The record of the page says that it is incomplete, so the next run writes it again.
    """
    from rankfall.errors import RankfallError
    from rankfall.run.snakemake.up_to_date import right

    fingerprints, outputs = own.fingerprints, own.outputs
    tables, figures = right(own.plan, fingerprints, outputs)
    lacks = {}
    for name in sorted(set(fingerprints.tables) - set(tables)):
        paths = [outputs.table(name), *(part.path for part in fingerprints.parts(name, outputs))]
        lacks[f"table {name}"] = next((failed[path] for path in paths if path in failed), NOT_MADE)
    for name in sorted(set(own.plan.figures) - set(figures)):
        lacks[f"figure {name}"] = failed.get(outputs.picture(name), NOT_MADE)
    if "cells" not in tables:
        raise RankfallError(f"the table of cells could not be made: {lacks['table cells']}")
    what = f"{len(tables)} tables and {len(figures)} figures"
    made = {
        "made": f"lacks {len(lacks)}",
        "made_of": json.dumps({"what": what, "code": dict(fingerprints.page().files())}),
    }
    write(own, tables, figures, made, None, lacks)
    return lacks


READ = {"The documentation": "docs/index.md", "The code": "src/rankfall", "How to run it": "README.md"}


def links_from(folder: Path) -> dict[str, str]:
    """Return title -> path, relative to the page's folder, of the documents in `READ` that the working directory has."""
    here = Path.cwd()
    found = {what: here / name for what, name in READ.items() if (here / name).exists()}
    return {what: Path(os.path.relpath(path, folder.resolve())).as_posix() for what, path in found.items()}


def read_provenances(plan: "Plan", results: Path) -> Iterator[dict[str, Any]]:
    """Yield the provenance of every planned cell that the store has. Snippets contain `SEED` in place of the seed."""
    from rankfall.design import canonical
    from rankfall.report.page.pack import SEED
    from rankfall.report.provenance import provenance, snippet, tail
    from rankfall.run.store import Store

    if not (results / "store").is_dir():
        return
    records = Store(results / "store").find_cells(
        (cell.key for cell in plan.cells), {cell.group for cell in plan.cells}
    )
    snippets: dict[str, str | None] = {}
    logs: dict[Path, str | None] = {}
    number = 918273645  # a seed that occurs nowhere else in a snippet
    for cell in plan.cells:
        if cell.key not in records:
            continue
        record = records[cell.key].record
        log = results / "logs" / "train" / cell.task.name / f"{cell.shard}.log"
        found = provenance(cell.key, {**record, "content": None}, None)
        made_of = canonical([record.get("labels"), record.get("content")])
        if made_of not in snippets:
            text = snippet({**record, "seed": number})
            snippets[made_of] = None if text is None else text.replace(str(number), SEED)
        if log not in logs:
            logs[log] = tail(log)
        yield found | {"spec": record.get("content"), "snippet": snippets[made_of], "log": logs[log]}


def caption(path: Path) -> str | None:
    """Read a figure's caption without the comment at its end; return None if there is no file."""
    from rankfall.report.rst import unescape

    try:
        text = path.read_text(encoding="utf-8")
    except OSError:
        return None
    return unescape(re.sub(r"\n\n\.\. made: .*\Z", "", text, flags=re.DOTALL).strip())
