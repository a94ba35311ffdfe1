"""The page of tables, generated from the declarations and from the docstrings of measures and figures."""

from rankfall import components
from rankfall.descriptions import Description
from rankfall.report.schema import CELL_COLUMNS, Column, schema

INTRODUCTION = """# Tables

All results of a run are in `results/tables/`, as Parquet files with one observation per row. This page is generated from
the declarations and from the docstrings of measures and figures, in the folder of each quantity
(`src/rankfall/rank/law/`), with equations and options. `rankfall table --docs PATH` writes it to a file.

- Names, types, nulls and duplicates are checked when a table is written, and its schema when it is read.
- Cells that diverged or failed have rows with a `status` and a `reason`; columns without a value are null.
- NaN is a value ("not a number"); null means that the column does not apply to the row. Columns that allow them say so.
- Components of the network and of its training appear as `name` or `name(option=value, ...)`.
- Rows are in a canonical order. Two runs of the same plan give the same table but for the columns marked *provenance*
  (times, machines, stacks), which comparisons leave out: `rankfall table --compare A B`.
- Metadata of each file (`rankfall.*` keys): table, schema version, digests of config and cells, rankfall's version,
  versions of Python, torch, transformers and others, device, time: of the process that wrote the file. The
  machine that trained a cell, perhaps earlier and elsewhere, is in its row: `device`, `host`, `torch`. Each column has its unit and
  meaning in its metadata.
"""


FIGURES = """## Figures

A figure is drawn from tables alone: `results/figures/NAME.png`, `.pdf`, `.svg`, and `.csv` with the numbers of all that is drawn. In a
configuration its options stand under its name: `figures: {paths: {task: sorting}}`, or `{mine: {figure: paths, task: sorting}}`.
"""


def document() -> str:
    """Return the text of the whole page."""
    measures = _measures()
    parts = [INTRODUCTION, "## Columns of every table of cells\n", _columns(CELL_COLUMNS)]
    for name in components.names("table"):
        table = schema(name)
        begins = "Begins with the columns of every table of cells. " if table.cells else ""
        key = ", ".join(f"`{column}`" for column in table.identity)
        identity = f"Rows are told apart by {key}.\n" if key else ""
        parts += [f"## {name}.parquet\n", f"One row for {table.row}.\n\n{begins}{identity}", _columns(table.own)]
        parts += measures.get(name, [])
    return "\n".join([*parts, FIGURES, *_figures()])


def _columns(columns: tuple[Column, ...]) -> str:
    """Return a table of columns as Markdown."""
    lines = ["| column | type | unit | meaning |", "|---|---|---|---|"]
    for column in columns:
        kind = column.type + ", null" * column.nullable + ", NaN" * column.nan
        meaning = column.meaning.replace("|", "\\|") + " *(provenance)*" * column.provenance
        lines.append(f"| `{column.name}` | {kind} | {column.unit} | {meaning} |")
    return "\n".join(lines) + "\n"


def _options(described: Description) -> str:
    """Return a sentence with the options and their defaults; empty if there are no options."""
    options = [
        f"`{option}`" + (f" = `{declared.default!r}`" if declared.plain else "")
        for option, declared in described.options.items()
    ]
    return f"\n\nOptions and their defaults: {', '.join(options)}." if options else ""


def _figures() -> list[str]:
    """Return a section for each figure from its docstrings and options."""
    sections = []
    for name in components.names("figure"):
        described = components.describe("figure", name)
        assert described is not None
        tables = ", ".join(f"`{table}`" for table in described.facts["TABLES"])
        text = "\n\n".join(filter(None, reversed(described.docs)))
        sections.append(f"### Figure `{name}`\n\nDrawn from {tables}.\n\n```text\n{text}\n```{_options(described)}\n")
    return sections


def _measures() -> dict[str, list[str]]:
    """Return table -> sections of the measures that fill it."""
    sections: dict[str, list[str]] = {}
    for name in components.names("measure"):
        described = components.describe("measure", name)
        assert described is not None
        text = f"### How `{name}` measures it\n\n```text\n{described.docs[1]}\n```{_options(described)}\n"
        sections.setdefault(described.facts["TABLE"], []).append(text)
    return sections
