"""Vega-Lite specifications of charts, with named data that the page's script fills: x, y or mean with low and high, line, and tooltips."""

import json
from functools import cache
from typing import Any

from rankfall.report.page.chart import Chart

HEIGHT = 320
TITLES = ("x", "y", "value", "line")  # titles that a specification contains as placeholders


def spec(chart: Chart) -> dict[str, Any]:
    """Return the specification of a chart. The script adds colours, which depend on the lines shown, and style."""
    line = chart.line.replace("_", " ")
    titles = dict(zip(TITLES, (chart.x_title, chart.y_title, chart.measured_title, line), strict=True))
    text = template(chart.kind)
    for place, title in titles.items():
        text = text.replace(json.dumps(f"@{place}@"), json.dumps(title))
    made: dict[str, Any] = json.loads(text)
    for layer in made["layer"]:
        encoding = layer["encoding"]
        if chart.kind == "lines":
            scale = "linear" if chart.scale == "wide" else chart.scale  # the script decides between linear and symlog
            encoding["y"]["scale"] = {"type": scale} | ({} if scale == "log" else {"zero": False})
    return made


@cache
def template(kind: str) -> str:
    """Return the specification of a kind of chart as JSON, with placeholders for titles."""
    import altair as alt

    made = {"lines": lines, "points": points, "grid": grid}[kind](alt).properties(width="container", height=HEIGHT)
    found = made.to_dict(validate=False, context={"pre_transform": False})
    found.pop("config", None)
    return json.dumps(found)


def lines(alt: Any) -> Any:
    rows = alt.Chart(alt.NamedData("rows"))
    colour = alt.Color("line:N", legend=None, scale=alt.Scale(domain=["-"], range=["#888888"]))
    x = alt.X("x:Q", title="@x@", axis=alt.Axis(grid=False))
    y = alt.Y("mean:Q", title="@y@")
    band = rows.mark_area(opacity=0.16).encode(x=x, y=alt.Y("low:Q", title="@y@"), y2="high:Q", color=colour)
    line = rows.mark_line(strokeWidth=2).encode(x=x, y=y, color=colour, detail="group:N")
    dots = rows.mark_point(filled=True, size=55, cursor="pointer", opacity=1).encode(
        x=x,
        y=y,
        color=colour,
        shape=alt.Shape("line:N", legend=None),
        tooltip=tooltip(alt, alt.Tooltip("x:Q", title="@x@")),
    )
    beside = alt.Chart(alt.NamedData("beside"))
    level = beside.mark_line(strokeWidth=1.5, strokeDash=[2, 4]).encode(
        x=x, y=y, color=level_colour(alt), detail="group:N"
    )
    name = beside.mark_text(align="right", baseline="bottom", dy=-3, fontSize=11).encode(
        x=x, y=y, text="label:N", color=level_colour(alt)
    )
    return alt.layer(band, level, line, dots, name)


def level_colour(alt: Any) -> Any:
    """Return the colour of a level: that of its line, or grey."""
    return alt.Color("shown:N", legend=None, scale=alt.Scale(domain=["-"], range=["#888888"]))


def points(alt: Any) -> Any:
    rows = alt.Chart(alt.NamedData("rows"))
    colour = alt.Color("line:N", legend=None, scale=alt.Scale(domain=["-"], range=["#888888"]))
    y = alt.Y("line:N", title=None, sort=None, axis=alt.Axis(grid=True))
    rule = rows.mark_rule(strokeWidth=2).encode(y=y, x=alt.X("low:Q", title="@y@"), x2="high:Q", color=colour)
    dots = rows.mark_point(filled=True, size=90, cursor="pointer", opacity=1).encode(
        y=y, x=alt.X("mean:Q", title="@y@"), color=colour, tooltip=tooltip(alt)
    )
    level = alt.Chart(alt.NamedData("beside")).mark_tick(thickness=3, size=18)
    level = level.encode(y=y, x=alt.X("mean:Q", title="@y@"), color=alt.value("@grey@"))
    return alt.layer(rule, level, dots)


def grid(alt: Any) -> Any:
    rows = alt.Chart(alt.NamedData("rows"))
    x = alt.X("x:N", title="@x@", axis=alt.Axis(labelAngle=-35))
    y = alt.Y("y:N", title="@y@")
    tip = [alt.Tooltip("y:N", title="@y@"), alt.Tooltip("x:N", title="@x@"), alt.Tooltip("value:N", title="@value@")]
    squares = rows.mark_rect().encode(
        x=x,
        y=y,
        color=alt.Color(
            "mean:Q", title="@value@", scale=alt.Scale(range=["#ffffff", "#888888"]), legend=alt.Legend(orient="top")
        ),
        tooltip=tip,
    )
    words = rows.mark_text(fontSize=11).encode(
        x=x,
        y=y,
        text="value:N",
        color=alt.condition("datum.light", alt.value("#ffffff"), alt.value("#111111")),
        tooltip=tip,
    )
    return alt.layer(squares, words)


def tooltip(alt: Any, *more: Any) -> list[Any]:
    return [
        alt.Tooltip("line:N", title="@line@"),
        *more,
        alt.Tooltip("value:N", title="@y@"),
        alt.Tooltip("band:N", title="deviation"),
        alt.Tooltip("beside:N", title="beside it"),
        alt.Tooltip("also:N", title="same point"),
        alt.Tooltip("keys:N", title="networks"),
    ]
