"""Write the page of a run: findings, scorecard, charts and tables in one HTML file that opens from disk."""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankfall.commands import _planned

if TYPE_CHECKING:
    from rankfall.plan import Plan


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _planned.add_arguments(parser)
    parser.add_argument("--out", type=Path, help="page to write, by default report/index.html of the results")


def run(args: argparse.Namespace) -> int:
    from rankfall import __version__
    from rankfall.disk import atomic
    from rankfall.errors import RankfallError
    from rankfall.report import tables
    from rankfall.report.looks import looks
    from rankfall.report.page.build import Given, page

    own = _planned.planned(args)
    made = own.check(own.statements.page(), "page")
    names = own.statements.tables
    own.check_tables(names)
    captions = {name: caption(Path(own.outputs.caption(name))) for name in sorted(own.plan.figures)}
    given = Given(
        own.plan.config.name,
        names,
        lambda name: tables.read_frame(Path(own.outputs.table(name)), name),
        provenances(own.plan, own.results),
        {name: text for name, text in captions.items() if text is not None},
        made,
        __version__,
    )
    try:
        with looks(own.plan.labels, own.plan.colours):
            text = page(given)
    except ModuleNotFoundError as error:
        raise RankfallError(f"the page needs {error.name}: pip install 'rankfall[page]'") from error
    out = args.out or Path(own.outputs.page)
    out.parent.mkdir(parents=True, exist_ok=True)
    with atomic(out) as file:
        file.write(text.encode())
    print(f"{out}: {len(text) / 1e6:.1f} MB")
    return 0


def provenances(plan: "Plan", results: Path) -> Iterator[dict[str, Any]]:
    """Of every cell that the store has; snippets have a mark for the seed."""
    from rankfall.design import canonical
    from rankfall.report.page.pack import SEED
    from rankfall.report.provenance import provenance, snippet, tail
    from rankfall.store import Store

    if not (results / "store").is_dir():
        return
    records = Store(results / "store").find_cells(
        (cell.key for cell in plan.cells), {cell.group for cell in plan.cells}
    )
    snippets: dict[str, str | None] = {}
    logs: dict[Path, str | None] = {}
    number = 918273645  # a seed that occurs nowhere
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
    """A figure's caption without the comment at its end."""
    from rankfall.report.rst import unescape

    try:
        text = path.read_text(encoding="utf-8")
    except OSError:
        return None
    return unescape(re.sub(r"\n\n\.\. made: .*\Z", "", text, flags=re.DOTALL).strip())
