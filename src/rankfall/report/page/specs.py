"""Charts as Vega-Lite, with named data that the page's script fills: x, y or mean with low and high, line, and what hovering says."""

from __future__ import annotations

from typing import Any

from rankfall.report.page.charts import Chart

HEIGHT = 320


def spec(chart: Chart) -> dict[str, Any]:
    """Colours, whose domain is what is shown, and looks are the script's."""
    import altair as alt

    makers = {"lines": lines, "points": points, "grid": grid}
    made = makers[chart.kind](alt, chart).properties(width="container", height=HEIGHT)
    found = made.to_dict(validate=False, context={"pre_transform": False})
    found.pop("config", None)
    return found


def lines(alt: Any, chart: Chart) -> Any:
    rows = alt.Chart(alt.NamedData("rows"))
    colour = alt.Color("line:N", legend=None, scale=alt.Scale(domain=["-"], range=["#888888"]))
    scale = alt.Scale(type=chart.scale, zero=False)
    x = alt.X("x:Q", title=chart.x_title, axis=alt.Axis(grid=False))
    y = alt.Y("mean:Q", title=chart.y_title, scale=scale)
    band = rows.mark_area(opacity=0.16).encode(
        x=x, y=alt.Y("low:Q", scale=scale, title=chart.y_title), y2="high:Q", color=colour
    )
    line = rows.mark_line(strokeWidth=2).encode(x=x, y=y, color=colour, detail="group:N")
    dots = rows.mark_point(filled=True, size=55, cursor="pointer", opacity=1).encode(
        x=x, y=y, color=colour, shape=alt.Shape("line:N", legend=None), tooltip=tooltip(alt, chart)
    )
    return alt.layer(band, line, dots)


def points(alt: Any, chart: Chart) -> Any:
    rows = alt.Chart(alt.NamedData("rows"))
    colour = alt.Color("line:N", legend=None, scale=alt.Scale(domain=["-"], range=["#888888"]))
    x = alt.X("line:N", title=None, sort=None, axis=alt.Axis(labelAngle=-40, grid=False))
    rule = rows.mark_rule(strokeWidth=2).encode(x=x, y=alt.Y("low:Q", title=chart.y_title), y2="high:Q", color=colour)
    dots = rows.mark_point(filled=True, size=90, cursor="pointer", opacity=1).encode(
        x=x, y=alt.Y("mean:Q", title=chart.y_title), color=colour, tooltip=tooltip(alt, chart)
    )
    return alt.layer(rule, dots)


def grid(alt: Any, chart: Chart) -> Any:
    rows = alt.Chart(alt.NamedData("rows"))
    x = alt.X("x:N", title=chart.x_title, axis=alt.Axis(labelAngle=-35))
    y = alt.Y("y:N", title=chart.y_title)
    tip = [
        alt.Tooltip("y:N", title=chart.y_title),
        alt.Tooltip("x:N", title=chart.x_title),
        alt.Tooltip("value:N", title=chart.value),
    ]
    squares = rows.mark_rect().encode(
        x=x,
        y=y,
        color=alt.Color("mean:Q", title=chart.value.replace("_", " "), scale=alt.Scale(scheme="cividis")),
        tooltip=tip,
    )
    words = rows.mark_text(fontSize=11).encode(
        x=x,
        y=y,
        text="value:N",
        color=alt.condition("datum.dark", alt.value("#ffffff"), alt.value("#111111")),
        tooltip=tip,
    )
    return alt.layer(squares, words)


def tooltip(alt: Any, chart: Chart) -> list[Any]:
    said = [alt.Tooltip("line:N", title=chart.line)]
    if chart.kind == "lines":
        said.append(alt.Tooltip("x:Q", title=chart.x_title))
    return [
        *said,
        alt.Tooltip("value:N", title=chart.y_title),
        alt.Tooltip("band:N", title="band"),
        alt.Tooltip("keys:N", title="cells"),
    ]
