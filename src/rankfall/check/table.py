"""A report as text: a table by layer, the variants, the interventions and the verdict."""

from __future__ import annotations

from collections.abc import Iterable

from rankfall.check.layer import LayerReport, StreamReport

# column -> heading
HEADINGS = {
    "residual": "residual",
    "without_first": "-1st tok",
    "without_largest": "-large ch",
    "norm": "norm",
    "effective_rank": "eff rank",
    "entropy": "entropy",
    "largest": "largest",
    "first": "on 1st",
    "query_gradient": "grad q",
    "key_gradient": "grad k",
    "gradient": "gradient",
    "order": "order",
    "distinct": "distinct",
    "influence_first": "infl 1st",
    "influence_middle": "infl mid",
    "influence_last": "infl last",
}

CELL = 9  # characters
RESIDUALS = ("residual", "without_first", "without_largest")


def lines(report: StreamReport, name: str, width: int | None = None) -> list[str]:
    """Return the lines of a report. A table wider than `width` is split into parts."""
    stream = f" {report.stream}" if report.stream else ""
    made = [
        f"{name}{stream}: {report.summary}; {report.samples} x {report.tokens} tokens{along(report)}; {report.kind}",
        "",
        *columns(report, width),
        "",
    ]
    made += [*variants(report), ""] if report.variants else []
    if report.interventions:
        made += [*outcomes(report), ""]
    made += report.verdict
    made += [f"({note})" for note in report.notes]
    made += [f"({what}: {reason})" for what, reason in report.reasons.items()]
    if " outside the stream" in report.summary:
        made.append(
            "(what it reads outside the stream, such as the output of an encoder, stays as it is in all variants)"
        )
    return made


def along(report: StreamReport) -> str:
    """Return the axes of the tokens for the first line, unless tokens lie along axis 1."""
    axes = ", ".join(map(str, report.axes))
    return f" (along ax{'is' if len(report.axes) == 1 else 'es'} {axes})" * (report.axes != (1,))


def columns(report: StreamReport, width: int | None = None) -> list[str]:
    """Return the table by layer, without empty columns. A table that is too wide is split into parts, one below the other."""
    rows = [
        {"layer": str(layer.layer), **{key: cell(layer, key, report.floor) for key in HEADINGS}}
        for layer in report.layers
    ]
    kept = [key for key in HEADINGS if any(row[key] for row in rows)]
    count = len(kept) if width is None else max((width - len("layer")) // (CELL + 2), 1)
    made: list[str] = []
    for start in range(0, len(kept), count):
        part = kept[start : start + count]
        made += [""] * bool(made)
        made.append("  ".join(["layer", *(f"{HEADINGS[key]:>{CELL}}" for key in part)]))
        made += ["  ".join([f"{row['layer']:>5}", *(f"{row[key]:>{CELL}}" for key in part)]) for row in rows]
    return made


def cell(layer: LayerReport, key: str, floor: float) -> str:
    if key == "order":
        return " ".join(f"{round(order, 2) + 0.0:.2f}" for order in layer.orders.values())
    return mark(getattr(layer, key), floor) if key in RESIDUALS else show_value(getattr(layer, key))


def mark(residual: float | None, floor: float) -> str:
    """Format a residual, with ~ before a value that is rounding."""
    return f"{'~' * (residual is not None and residual < floor)}{show_value(residual)}"


def show_value(value: float | int | None) -> str:
    if value is None:
        return ""
    if isinstance(value, int):
        return str(value)
    size = abs(value)
    return (
        "0"
        if not size
        else f"{value:.3f}"
        if 0.01 <= size < 100
        else f"{value:.1f}"
        if 100 <= size < 1e5
        else f"{value:.1e}"
    )


def variants(report: StreamReport) -> list[str]:
    """Return a line with the residual of every variant at the last layer."""
    each = [f"{name} {mark(values[-1], report.floor) or 'none'}" for name, values in report.variants.items()]
    return [f"residual of the last layer: {', '.join(each)}" + " (~: rounding)" * any("~" in one for one in each)]


def outcomes(report: StreamReport) -> list[str]:
    """Return the table of interventions."""
    rows = [("as it is", report.layers[-1].residual, report.layers[0].gradient)]
    rows += [(one.name, one.last, one.gradient) for one in report.interventions]
    width = max(len(name) for name, *_ in rows)
    made = [f"{'changed':{width}}  {'residual':>9}  {'gradient':>9}"]
    return made + [
        f"{name:{width}}  {mark(last, report.floor):>9}  {show_value(gradient):>9}" for name, last, gradient in rows
    ]


def text(reports: Iterable[StreamReport], name: str, width: int | None = None) -> str:
    return "\n\n".join("\n".join(lines(report, name, width)) for report in reports)
