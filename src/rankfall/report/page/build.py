"""The page from tables, definitions and provenance: one HTML text with everything in it."""

from __future__ import annotations

import hashlib
import html
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from rankfall.report.colours import colour
from rankfall.report.headlines import HEADLINES, STUDIES
from rankfall.report.page.behind import behind
from rankfall.report.page.charts import CHARTS, MENUS, Chart
from rankfall.report.page.findings import Finding, findings, was_run
from rankfall.report.page.library import bundle
from rankfall.report.page.pack import compressed, packed, shared
from rankfall.report.page.rows import chart_rows, encoded, lacking_rows, level_rows
from rankfall.report.page.specs import spec
from rankfall.report.schema import CELL_COLUMNS, schema
from rankfall.report.schemas.scorecard import MADE_OF
from rankfall.report.settings import settings_in
from rankfall.report.variants import placed

if TYPE_CHECKING:
    from pandas import DataFrame

MOST = 4_800_000  # characters of a page: tables beyond it are linked, not embedded
CELL_FIELDS = ("key", "label", "setting", "apart", "task", "architecture", "training", "depth", "seed", "status")
SECTIONS = {"scorecard": "Scorecard", **STUDIES, "published": "Published numbers and ours"}
SHORT = {"scorecard": "Scorecard", "rank": "Rank", "position": "Position", "identity": "Identity", "use": "Use and cost",
         "published": "Published"}  # fmt: skip
BUNDLE = "vega-embed"
SCRIPTS = ("data", "elements", "colours", "view", "roving", "lists", "dialog", "scorecard", "published", "meetings", "drawing", "point",
           "panel", "start")  # fmt: skip


@dataclass(frozen=True)
class Given:
    """What a page is made from. `read(name)`: a table of the run; `figures`: name -> caption; `made`: the record that the page keeps."""

    name: str
    tables: Sequence[str]
    read: Callable[[str], Any]
    provenance: Iterable[Mapping[str, Any]]
    figures: Mapping[str, str]
    made: Mapping[str, str]
    version: str
    lacks: Mapping[str, str] = field(default_factory=dict)  # table or figure that could not be made -> why


def page(given: Given, most: int = MOST) -> str:
    """The text of index.html."""
    frames = {name: given.read(name) for name in given.tables}
    read = frames.get
    cells = placed(frames["cells"])
    variant = cells.variant.where(cells.variant == "", " (" + cells.variant + ")")
    cells = cells.assign(label=cells.architecture + variant, apart=apart(cells))
    places = {key: place for place, key in enumerate(cells.key)}
    charts = [
        drawn(chart, with_chance(frames[chart.table], cells), places) for chart in CHARTS if chart.table in frames
    ]
    main = {
        "cells": encoded(cells[list(CELL_FIELDS)]),
        "colours": {label: colour(name) for label, name in lines_of(cells, charts)},
        "charts": [chart for chart in charts if chart["data"]["rows"]],
        "headlines": [asdict(headline) for headline in HEADLINES],
        "scorecard": encoded(frames["scorecard"]) if "scorecard" in frames else None,
        "settings": [{"label": one.label, "sizes": one.sizes} for one in settings_in(frames["scorecard"])]
        if "scorecard" in frames
        else [],
        "reproduction": encoded(frames["reproduction"]) if "reproduction" in frames else None,
        "menus": dict(MENUS),
        "made_of": {name: about.partition("; null")[0] for name, about in MADE_OF.items()},
        "cell_columns": [column.name for column in CELL_COLUMNS],
    }
    blocks = {
        "main": packed(main),
        "provenance": packed(shared(given.provenance)),
        "behind": packed(behind(frames, cells)),
        BUNDLE: compressed(bundle()),
    }
    own = files("rankfall.report.page")
    parts = {"style": own.joinpath("page.css").read_text("utf-8"), "script": script()}
    room = most - sum(map(len, [*blocks.values(), *parts.values()]))
    tables = embedded(frames, room)
    blocks |= {f"table-{name}": text for name, text in tables.items()}
    sections = [name for name in SECTIONS if has(name, main)]
    story = findings(read)
    text = own.joinpath("page.html").read_text("utf-8")
    values = parts | {
        "title": html.escape(f"Rankfall: {given.name}"),
        "nav": "".join(f'<a href="#{name}">{SHORT[name]}</a>' for name in sections) + '<a href="#downloads">Tables</a>',
        "was_run": html.escape(was_run(cells)) + lacking(given.lacks),
        "residual": RESIDUAL if any(found.study == "rank" for found in story) else "",
        "findings": "".join(told(found, sections) for found in story),
        "sections": "\n".join(section(name, main, given.figures) for name in sections),
        "tables": "".join(download(name, frame, name in tables) for name, frame in sorted(frames.items())),
        "uncharted": uncharted(frames),
        "footer": html.escape(
            f"Made by Rankfall {given.version} from the tables of this run; this page opens from disk and loads nothing."
        ),
        "data": "\n".join(
            f'<script type="application/octet-stream" id="data-{name}">{block}</script>'
            for name, block in blocks.items()
        ),
    }
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    record = dict(given.made) | {"page": hashlib.sha256(text.encode()).hexdigest()[:24]}
    return text + f"<!-- made: {json.dumps(record)} -->\n"


def script() -> str:
    """The page's script, from its files: one function, so that nothing of it is seen outside."""
    folder = files("rankfall.report.page").joinpath("script")
    return (
        '"use strict";\n(() => {\n'
        + "\n".join(folder.joinpath(f"{name}.js").read_text("utf-8") for name in SCRIPTS)
        + "})();"
    )


def lacking(lacks: Mapping[str, str]) -> str:
    """What the page would show if all had been made, and why it does not."""
    if not lacks:
        return ""
    items = "; ".join(f"{html.escape(name)}: {html.escape(why)}" for name, why in lacks.items())
    return (
        f' <strong id="lacks">This page lacks {len(lacks)} tables or figures that could not be made. {items}.</strong>'
    )


def apart(cells: DataFrame) -> list[str]:
    """What settings differ in beside task, training and depth."""
    known = cells.task + ", " + cells.training + ", depth " + cells.depth.astype(str)
    return [setting[len(start) :].removeprefix(", ") for setting, start in zip(cells.setting, known, strict=True)]


def lines_of(cells: DataFrame, charts: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """What lines are called, and the architecture or variant of a model whose colour each has."""
    for chart in charts:
        if not chart["networks"] and chart["kind"] == "lines":
            yield from ((name, name) for name in chart["data"]["columns"][chart["line"]]["of"])
    yield from zip(cells.label, cells.architecture)


def with_chance(table: DataFrame, cells: DataFrame) -> DataFrame:
    """A table of networks with the chance of each one's task."""
    return table.assign(chance_of_cell=table.key.map(cells.set_index("key").chance)) if "key" in table else table


def drawn(chart: Chart, table: DataFrame, places: Mapping[str, int]) -> dict[str, Any]:
    """A chart with its rows, what they are compared with, what is lacking, and its specification."""
    rows = chart_rows(chart, table)
    networks = "key" in rows
    known = places if networks else None
    about = {name: value for name, value in asdict(chart).items() if name not in ("where", "most", "beside")}
    about |= {"measured": chart.measured, "measured_title": chart.measured_title, "networks": networks}
    about["beside"] = [
        {"name": level.name, "column": level.column, "shared": level.shared}
        | ({"rows": encoded(level_rows(chart, table, level.where), known)} if level.where else {})
        for level in chart.beside
    ]
    about["lacking"] = encoded(lacking_rows(chart, table), known)
    return about | {"data": encoded(rows, known), "spec": spec(chart)}


def embedded(frames: Mapping[str, DataFrame], room: int) -> dict[str, str]:
    """The smallest tables that fit, as text; what a cell is stands in the table of cells, once."""
    cell = [column.name for column in CELL_COLUMNS if column.name != "key"]
    texts: dict[str, str] = {}
    for name, frame in sorted(frames.items(), key=lambda one: len(one[1]) * len(one[1].columns)):
        if (
            len(frame) * len(frame.columns) > room
        ):  # a cell takes a character at least, even compressed, in all but name
            continue
        own = frame.drop(columns=cell) if name != "cells" and schema(name).cells else frame
        texts[name] = packed(encoded(own))
    kept, used = {}, 0
    for name, text in sorted(texts.items(), key=lambda one: len(one[1])):
        used += len(text)
        if used <= room:
            kept[name] = text
    return kept


def has(section: str, main: Mapping[str, Any]) -> bool:
    if section in ("scorecard", "published"):
        return main["scorecard" if section == "scorecard" else "reproduction"] is not None
    return any(chart["study"] == section for chart in main["charts"])


def section(name: str, main: Mapping[str, Any], figures: Mapping[str, str]) -> str:
    """The heading and the places that the script fills."""
    title = html.escape(SECTIONS[name])
    inner = {"scorecard": SCORECARD, "published": PUBLISHED}.get(name, "")
    for chart in main["charts"]:
        if chart["study"] == name:
            inner += CHART.format(**{key: html.escape(str(chart[key])) for key in ("name", "title", "text")})
    if name == "scorecard" and figures:
        inner += pictures(figures)
    return f'<section id="{name}" aria-labelledby="{name}-title"><h2 id="{name}-title">{title}</h2>{inner}</section>'


def pictures(figures: Mapping[str, str]) -> str:
    """Links to the figures, which lie beside the page."""
    count = f"{len(figures)} figure{'' if len(figures) == 1 else 's'}"
    items = "".join(
        f'<li><a href="../figures/{html.escape(name)}.png">{html.escape(name)}</a> '
        f'(<a href="../figures/{html.escape(name)}.pdf">PDF</a>, <a href="../figures/{html.escape(name)}.svg">SVG</a>, '
        f'<a href="../figures/{html.escape(name)}.csv">CSV</a>): {html.escape(caption)}</li>'
        for name, caption in sorted(figures.items())
    )
    return f"<details><summary>Pictures for print, {count} with captions</summary><ul>{items}</ul></details>"


def told(found: Finding, sections: Sequence[str]) -> str:
    link = f' <a href="#{found.study}">{SHORT[found.study]}</a>' if found.study in sections else ""
    return f"<div><dt>{html.escape(found.question)}</dt><dd>{html.escape(found.answer)}{link}</dd></div>"


def uncharted(names: Iterable[str]) -> str:
    """A sentence on the tables that nothing on the page is drawn from."""
    shown = {"cells", "scorecard", "reproduction", *(chart.table for chart in CHARTS)}
    left = sorted(set(names) - shown)
    return f"No chart of this page is drawn from {', '.join(left)}." if left else ""


def download(name: str, frame: DataFrame, inside: bool) -> str:
    """A row of the list of tables."""
    csv = (
        f'<button type="button" data-csv="{name}" aria-label="{name} as CSV">CSV</button> '
        if inside
        else "too large to be here "
    )
    parquet = f'<a href="../tables/{name}.parquet" download aria-label="{name} as Parquet">Parquet</a>'
    row = html.escape(schema(name).row)
    return f'<tr><th scope="row">{name}</th><td>{row}</td><td>{len(frame):,}</td><td>{csv}{parquet}</td></tr>'


RESIDUAL = (
    "The <em>residual</em> of a layer is what is left of the tokens' vectors without their mean, as a share of their size: about 1 where "
    "they have nothing in common, 0 where all are one vector, which is rank collapse."
)
SCORECARD = (
    '<h3>Setting: <span id="score-at" aria-live="polite"></span></h3>'
    "<p>One row an architecture, one column a headline number of each study, with its standard deviation over seeds; darker is what "
    "keeps more. All rows have one setting, since numbers of two are not comparable: choose it. Select a heading to sort, a name for "
    "what the architecture is made of, a number for its definition, its networks and "
    "their rows. A dash: measured, and there is no such number; blank: not measured. Both say why when selected. By keyboard: one stop "
    "of Tab, then arrow keys.</p>"
    '<div class="controls"><label>setting<select id="score-setting"></select></label>'
    '<label>numbers<select id="score-part"></select></label>'
    '<label>show architectures with<input type="search" id="score-search" placeholder="name"></label><span id="score-link"></span></div>'
    '<div class="score" role="region" aria-label="Scorecard"><table id="scorecard-table"></table></div>'
    '<p class="hint" id="score-count" role="status"></p><p class="hint" id="score-engines"></p>'
)
PUBLISHED = (
    "<p>Published numbers beside ours, worst first. A comparison holds where ours lies within the tolerance of the published value, or on "
    "the side that the paper claims.</p>"
    '<div class="controls"><label>verdict<select id="published-verdict"><option value="">all</option><option>holds</option>'
    "<option>misses</option><option>not measured</option></select></label>"
    '<label>source<select id="published-source"><option value="">all</option></select></label>'
    '<label>text<input type="search" id="published-search" placeholder="what, place, setting"></label></div>'
    '<p class="hint" id="published-count" role="status"></p>'
    '<div class="scroll" role="region" aria-label="Published numbers and ours" tabindex="0"><table id="published-table"></table></div>'
)
CHART = (
    '<div class="chart" id="chart-{name}" data-chart="{name}"><h3>{title}</h3><p>{text}</p><div class="controls"></div>'
    '<div class="chips" role="toolbar" aria-label="Lines of {title}"></div><p class="hint" role="status"></p>'
    '<div class="view" role="group" aria-label="Chart: {title}"></div><p class="says" aria-live="polite"></p>'
    '<details><summary>Its numbers as a table</summary><div class="numbers"></div></details></div>'
)
