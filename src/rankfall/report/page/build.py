"""Build the page as one HTML text from tables, definitions and provenance."""

import html
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import accumulate
from typing import Any

from rankfall.annotations import DataFrame
from rankfall.report.colours import colour
from rankfall.report.headlines import headlines
from rankfall.report.labels import join, name_models
from rankfall.report.looks import label
from rankfall.report.page.chart import MENUS, Chart, charts
from rankfall.report.page.findings import choose_findings, findings, was_run
from rankfall.report.page.glossary import linker, write_glossary
from rankfall.report.page.rows import (
    behind,
    bundle,
    chart_rows,
    compress,
    encode,
    level_rows,
    pack,
    select_missing,
    share_values,
)
from rankfall.report.page.sections import (
    SECTIONS,
    SHORT,
    has,
    read_sources,
    say_uncharted,
    write_download,
    write_findings,
    write_links,
    write_opening,
    write_section,
)
from rankfall.report.ranking import shade
from rankfall.report.schema import CELL_COLUMNS, schema
from rankfall.report.settings import MADE_OF, number_variants, rows_at, say_setting, settings_in

MOST = 4_800_000  # maximum number of characters of a page; tables that do not fit are linked, not embedded
CELL_FIELDS = ("key", "label", "setting", "apart", "task", "architecture", "training", "depth", "seed", "status")
BUNDLE = "vega-embed"
FIRST = ("scorecard",)  # sections that stand before "more"
SCRIPTS = ("data", "elements", "colours", "view", "roving", "lists", "dialog", "scorecard", "pairs", "published", "claims", "meetings",
           "drawing", "point", "panel", "start")  # fmt: skip


@dataclass(frozen=True)
class PageInputs:
    """The inputs of a page. `read(name)` returns a table of the run. `figures`: name -> caption.
    `links`: title -> path of a document, relative to the page's folder."""

    name: str
    tables: Sequence[str]
    read: Callable[[str], Any]
    provenance: Iterable[Mapping[str, Any]]
    figures: Mapping[str, str]
    version: str
    lacks: Mapping[str, str] = field(default_factory=dict)  # table or figure that could not be made -> why
    links: Mapping[str, str] = field(default_factory=dict)


def page(inputs: PageInputs, most: int = MOST) -> str:
    """Return the text of index.html."""
    frames = {name: inputs.read(name) for name in inputs.tables}
    cells, papers = number_variants(frames["cells"]), read_sources(frames.get("reproduction"))
    variant = cells.variant.where(cells.variant == "", " (" + cells.variant + ")")
    shown = relabel(cells.assign(apart=find_differing_fields(cells)))
    shown = shown.assign(label=shown.architecture + variant)
    drawn = [draw(chart, frames[chart.table], cells) for chart in charts() if len(frames.get(chart.table, ()))]
    drawn = [chart for chart in drawn if chart["data"]["rows"]]
    scores = frames.get("scorecard")
    main = {
        "cells": encode(shown[list(CELL_FIELDS)]),
        "colours": {line: colour(name) for line, name in lines_of(cells.assign(label=shown.label), drawn)},
        "charts": drawn,
        "headlines": [headline.fields() for headline in headlines()],
        "scorecard": None if scores is None else encode(shade_scores(relabel(scores))),
        "settings": []
        if scores is None
        else [{"label": say_setting(setting.label), "sizes": setting.sizes} for setting in settings_in(scores)],
        "reproduction": encode(frames["reproduction"]) if "reproduction" in frames else None,
        "claims": encode(frames["claims"]) if len(frames.get("claims", ())) else None,
        "pictures": pictures(frames["claims"], inputs.figures) if "claims" in frames else {},
        "sources": papers,
        "menus": dict(MENUS),
        "made_of": {name: meaning.partition("; null")[0] for name, meaning in MADE_OF.items()},
        "cell_columns": [column.name for column in CELL_COLUMNS],
    }
    blocks = {
        "main": pack(main),
        "provenance": pack(share_values(inputs.provenance)),
        "behind": pack(behind(frames, cells)),
        BUNDLE: compress(bundle()),
    }
    folder = files("rankfall.report.page")
    parts = {"style": folder.joinpath("page.css").read_text("utf-8"), "script": script()}
    room = most - sum(map(len, [*blocks.values(), *parts.values()]))
    tables = embed_tables(frames, room)
    blocks |= {f"table-{name}": text for name, text in tables.items()}
    sections = [name for name in SECTIONS if has(name, main)]
    story = findings(frames.get)
    first, link = choose_findings(story), linker(cells.architecture.map(label).unique())
    # The first picture may open the page, or else it is the first of lines or points.
    opening = {chart.name for chart in charts() if chart.opening}
    pictures_first = sorted(
        (chart for chart in drawn if chart["name"] in opening or chart["kind"] != "grid"),
        key=lambda chart: chart["name"] not in opening,
    )
    text = folder.joinpath("page.html").read_text("utf-8")
    values = parts | {
        "title": html.escape(f"Rankfall: {inputs.name}"),
        "nav": "".join(f'<a href="#{name}">{SHORT[name]}</a>' for name in sections)
        + '<a href="#downloads">Tables</a><a href="#glossary">Glossary</a>',
        "was_run": html.escape(was_run(cells)) + describe_missing(inputs.lacks),
        "findings": write_findings(story, first, sections, link),
        "opening": write_opening(
            next(iter(pictures_first), None),
            next((say_setting(setting.setting) for setting in first if setting.study == "rank"), ""),
        ),
        "sections": "\n".join(write_section(name, main, inputs.figures, link) for name in sections if name in FIRST),
        "rest": "\n".join(write_section(name, main, inputs.figures, link) for name in sections if name not in FIRST),
        "more": f"More: {join([*(SHORT[name].lower() for name in sections if name not in FIRST), 'tables', 'glossary'])}",
        "glossary": write_glossary(cells),
        "links": write_links(papers.values(), inputs.links),
        "tables": "".join(write_download(name, frame, name in tables) for name, frame in sorted(frames.items())),
        "uncharted": say_uncharted(frames),
        "footer": html.escape(
            f"Made by Rankfall {inputs.version} from the tables of this run; this page opens from disk and loads nothing."
        ),
        "data": "\n".join(
            f'<script type="application/octet-stream" id="data-{name}">{block}</script>'
            for name, block in blocks.items()
        ),
    }
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return text


def script() -> str:
    """Return the page's script, joined from its files to one function, so that its names are not global."""
    folder = files("rankfall.report.page").joinpath("script")
    return (
        '"use strict";\n(() => {\n'
        + "\n".join(folder.joinpath(f"{name}.js").read_text("utf-8") for name in SCRIPTS)
        + "})();"
    )


def describe_missing(lacks: Mapping[str, str]) -> str:
    """Return a sentence that lists the missing tables and figures with reasons, or an empty text if none is missing."""
    items = "; ".join(html.escape(f"{name}: {why.removeprefix(f'{name}: ')}") for name, why in lacks.items())
    return (
        f' <strong id="lacks">This page lacks what could not be made ({len(lacks)}): {items}.</strong>' if lacks else ""
    )


def relabel(frame: DataFrame) -> DataFrame:
    """Replace the names in a table by the labels of the configuration."""
    names = {name: frame[name].map(label) for name in ("architecture", "task", "training")}
    return frame.assign(setting=frame.setting.map(say_setting), **names)


def shade_scores(scores: DataFrame) -> DataFrame:
    """Return the scorecard with a shade for each number and without the numbers of single seeds."""
    from pandas import concat

    shaded = scores.drop(columns=[column for column in scores if column.endswith("_each")])
    parts = [(setting, rows_at(scores, setting)) for setting in settings_in(scores)]
    for headline in headlines():
        shades = [shade(rows, headline, setting) for setting, rows in parts]
        shaded[f"{headline.name}_shade"] = concat(shades).reindex(scores.index) if shades else 0.0
    return shaded


def find_differing_fields(cells: DataFrame) -> list[str]:
    """Return the part of each cell's setting label that follows task, training and depth."""
    prefixes = cells.task + ", " + cells.training + ", depth " + cells.depth.astype(str)
    return [setting[len(start) :].removeprefix(", ") for setting, start in zip(cells.setting, prefixes, strict=True)]


def pictures(claims: DataFrame, figures: Mapping[str, str]) -> dict[str, list[str]]:
    """Return claim -> the figures whose captions contain its statement."""
    return {
        claim: [name for name, caption in sorted(figures.items()) if says in caption]
        for claim, says in zip(claims.claim, claims.says, strict=True)
    }


def lines_of(cells: DataFrame, charts: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield the label of each line with the architecture or model variant that determines its colour."""
    for chart in charts:
        if not chart["networks"] and chart["kind"] == "lines":
            named = chart["labelled"]
            yield from ((name, named.get(name, name)) for name in chart["data"]["columns"][chart["line"]]["of"])
    yield from zip(cells.label, cells.architecture)


def draw(chart: Chart, table: DataFrame, cells: DataFrame) -> dict[str, Any]:
    """Return the data of a chart: its rows, reference levels and missing values. Rows of networks also have the chance of their task."""
    networks = "key" in table
    places = {key: place for place, key in enumerate(cells.key)} if networks else None
    if networks:
        table = table.assign(chance_of_cell=table.key.map(cells.set_index("key").chance))
    rows = chart_rows(chart, table)
    texts = {} if networks else name_texts(chart, table)

    def encode_labelled(frame: DataFrame) -> dict[str, Any]:
        return encode(frame.replace(texts), places)

    return chart.fields() | {
        "networks": networks,
        "beside": [
            {"name": level.name, "column": level.column, "shared": level.shared}
            | ({"rows": encode_labelled(level_rows(chart, table, level.where))} if level.where else {})
            for level in chart.beside
        ],
        "lacking": encode_labelled(select_missing(chart, table)),
        "labelled": {text: name for name, text in texts.get(chart.line, {}).items()},
        "start": {column: texts.get(column, {}).get(name, name) for column, name in chart.start.items()},
        "data": encode_labelled(rows),
    }


def name_texts(chart: Chart, table: DataFrame) -> dict[str, dict[str, str]]:
    """Return column -> name -> label for a chart whose items are not networks, without labels that equal the name."""
    shown = {}
    for column in {chart.line, *chart.choose, chart.x, chart.y} & set(table):
        texts = sorted({text for text in table[column].dropna().unique() if isinstance(text, str)})
        labels = name_models(texts) if column == "model" else {text: label(text) for text in texts}
        if names := {text: name for text, name in labels.items() if name != text}:
            shown[column] = names
    return shown


def embed_tables(frames: Mapping[str, DataFrame], room: int) -> dict[str, str]:
    """Return the smallest tables that fit into `room` as text. Only the table of cells has the columns of the cell."""
    cell = [column.name for column in CELL_COLUMNS if column.name != "key"]
    texts = {
        name: pack(encode(frame.drop(columns=cell) if name != "cells" and schema(name).cells else frame))
        for name, frame in frames.items()
        if frame.size <= room  # even compressed, an entry takes about one character or more
    }
    smallest = sorted(texts, key=lambda name: len(texts[name]))
    sizes = accumulate(len(texts[name]) for name in smallest)
    return {name: texts[name] for name, size in zip(smallest, sizes, strict=True) if size <= room}
