"""Write the page of a run: findings, scorecard, charts and tables in one HTML file that opens from disk."""

import argparse
import os
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rankfall.commands import _planned

if TYPE_CHECKING:
    from rankfall.run.plan import Plan
    from rankfall.run.snakemake.run_plan import RunPlan

PAGE = Path("report") / "index.html"  # under the folder of results

ARGUMENTS = (
    _planned.ARGUMENTS
    + """
--out FILE         page to write, by default report/index.html of the results
"""
)


def run(args: argparse.Namespace) -> int:
    from rankfall.run.snakemake.run_plan import RunPlan

    run = RunPlan.load(args.config.parent)
    planned = _planned.plan_job(args, "page", cells=run.shard_files if run else [])
    out = args.out or planned.results / PAGE
    size = write(planned.plan, planned.run, planned.results, out)
    print(f"{out}: {size / 1e6:.1f} MB")
    return 0


def write(
    plan: "Plan", run: "RunPlan", results: Path, out: Path, lacks: Mapping[str, str] = MappingProxyType({})
) -> int:
    """Write the page of all tables and figures except those in `lacks`, and return its number of characters. Links are relative to
    `report/index.html` of the results, wherever the page is written."""
    from rankfall import __version__
    from rankfall.disk import write as write_file
    from rankfall.errors import RankfallError
    from rankfall.report import tables
    from rankfall.report.looks import looks
    from rankfall.report.page.build import PageInputs, page
    from rankfall.report.style import unescape

    figures = [name for name in sorted(plan.figures) if f"figure {name}" not in lacks]
    captions = {name: results / run.job("figure", name).files[-1] for name in figures}
    inputs = PageInputs(
        plan.config.name,
        [name for name in run.tables if f"table {name}" not in lacks],
        lambda name: tables.read_frame(results / run.job("table", name).files[0], name),
        read_provenances(plan, run, results),
        {name: unescape(path.read_text("utf-8").strip()) for name, path in captions.items() if path.is_file()},
        __version__,
        lacks,
        links_from((results / PAGE).parent),
    )
    try:
        with looks(plan.labels, plan.colours):
            text = page(inputs)
    except ModuleNotFoundError as error:
        raise RankfallError(f"the page needs {error.name}: pip install 'rankfall[page]'") from error
    write_file(out, text)
    return len(text)


def write_incomplete(run: "RunPlan") -> dict[str, str]:
    """Write the page of the existing tables and figures after jobs failed. Return the missing ones with reasons."""
    from rankfall.errors import RankfallError
    from rankfall.run.plan.written import read_plan
    from rankfall.run.snakemake.publish import explain_lacking

    lacks = explain_lacking(run)
    if "table cells" in lacks:
        raise RankfallError(f"the table of cells could not be made: {lacks['table cells']}")
    if lacks and str(PAGE) in run.final:
        write(read_plan(run.folder, *run.shard_files), run, run.results, run.results / PAGE, lacks)
    return lacks


READ = {"The documentation": "docs/index.md", "The code": "src/rankfall", "How to run it": "README.md"}


def links_from(folder: Path) -> dict[str, str]:
    """Return title -> path relative to the page's folder, for the documents in `READ` that exist in the working directory."""
    checkout = Path.cwd()
    documents = {title: checkout / name for title, name in READ.items() if (checkout / name).exists()}
    return {title: Path(os.path.relpath(path, folder.resolve())).as_posix() for title, path in documents.items()}


def read_provenances(plan: "Plan", run: "RunPlan", results: Path) -> Iterator[dict[str, Any]]:
    """Yield the provenance of each cell in the store. Snippets have the mark `SEED` for the seed, so that cells share them."""
    from rankfall.design import canonical
    from rankfall.report.page.rows import SEED
    from rankfall.report.provenance import provenance, snippet, tail
    from rankfall.run.store import Store

    if not (results / "store").is_dir():
        return
    store = Store(results / "store")
    if store.objects:
        store.objects.fetch_new("logs")
    records = store.find_cells((cell.key for cell in plan.cells), {cell.group for cell in plan.cells})
    snippets: dict[str, str] = {}
    read_tail = cache(tail)
    mark = 918273645  # a seed that occurs nowhere else in a snippet
    for cell in plan.cells:
        if cell.key not in records:
            continue
        record = records[cell.key].record
        specification = canonical([record["labels"], record["content"]])
        if specification not in snippets:
            snippets[specification] = snippet({**record, "seed": mark}).replace(str(mark), SEED)
        log = read_tail(results / run.job("train", cell.task.name, cell.shard).log)
        yield provenance(cell.key, record) | {"snippet": snippets[specification], "log": log}
