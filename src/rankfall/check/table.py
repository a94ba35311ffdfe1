"""A report as text: a line a check, then a table by layer, the variants and the interventions. Several models stand side by side.

`Condition` is one of `--fail-if`: a quantity, a comparison and a number, such as "residual_last < 0.1".
"""

import operator
import re
from collections.abc import Iterable
from dataclasses import dataclass

from rankfall.check.checks.rank import explain_rank
from rankfall.check.layer import LayerReport, StreamReport
from rankfall.check.named import FAIL, NONE, PASS, WARN, Result
from rankfall.errors import RankfallError, suggest

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
SHORT = {FAIL: "FAIL", NONE: "n/a"}
SEVERITY = (NONE, PASS, WARN, FAIL)
RESIDUALS = ("residual", "without_first", "without_largest")


def result_lines(report: StreamReport, name: str) -> list[str]:
    """Return a line that describes the stream, and a line for each check."""
    stream = f" {report.stream}" if report.stream else ""
    head = f"{name}{stream}: {report.summary}; {report.samples} x {report.tokens} tokens{describe_axes(report)}; {report.kind}"
    return [head, *(line_of(result) for result in report.results)]


def line_of(result: Result) -> str:
    """Return the line of a result: verdict, name, sentence, and the module path in brackets."""
    verdict = SHORT.get(result.verdict, result.verdict)
    return f"{verdict:4}  {result.check:19}  {result.sentence}{f' [{result.where}]' * bool(result.where)}"


def side_by_side(models: dict[str, list[StreamReport]]) -> list[str]:
    """Return the verdicts of several models side by side, and a line for each that is not passed."""
    worst: dict[str, dict[str, str]] = {name: {} for name in models}
    for name, reports in models.items():
        for result in (result for report in reports for result in report.results):
            worst[name][result.check] = max(worst[name].get(result.check, NONE), result.verdict, key=SEVERITY.index)
    table = [("", {name: name for name in models})]
    table += [(check, {name: worst[name].get(check, NONE) for name in models}) for check in next(iter(worst.values()))]
    output = [
        "  ".join(
            [f"{check:19}", *(f"{SHORT.get(verdict, verdict):>{max(len(name), 4)}}" for name, verdict in row.items())]
        )
        for check, row in table
    ]
    for name, reports in models.items():
        bad = [result for report in reports for result in report.results if result.verdict in (FAIL, WARN)]
        output += ["", f"{name}:", *(line_of(result) for result in bad)] if bad else []
    return output


def report_lines(report: StreamReport, name: str, width: int | None) -> list[str]:
    """Return the lines of a report. A table wider than `width` is split into parts."""
    output = [*result_lines(report, name), "", *layer_table(report, width), ""]
    output += [*variants_lines(report), ""] if report.variants else []
    if report.interventions:
        output += [*interventions_table(report), ""]
    output += explain_rank(report)
    output += [f"({note})" for note in report.notes]
    output += [f"({column}: {reason})" for column, reason in report.reasons.items()]
    if " outside the stream" in report.summary:
        outside = "what it reads outside the stream, such as the output of an encoder"
        output.append(f"({outside}, stays as it is in all variants)")
    return output


def describe_axes(report: StreamReport) -> str:
    """Return the axes of the tokens for the first line, unless tokens lie along axis 1."""
    axes = ", ".join(map(str, report.axes))
    return f" (along ax{'is' if len(report.axes) == 1 else 'es'} {axes})" * (report.axes != (1,))


def layer_table(report: StreamReport, width: int | None) -> list[str]:
    """Return the table by layer, without empty columns. A table that is too wide is split into parts, one below the other."""
    rows = [
        {"layer": str(layer.layer), **{key: layer_cell(layer, key, report.floor) for key in HEADINGS}}
        for layer in report.layers
    ]
    kept = [key for key in HEADINGS if any(row[key] for row in rows)]
    count = len(kept) if width is None else max((width - len("layer")) // (CELL + 2), 1)
    output: list[str] = []
    for start in range(0, len(kept), count):
        part = kept[start : start + count]
        output += [""] * bool(output)
        output.append("  ".join(["layer", *(f"{HEADINGS[key]:>{CELL}}" for key in part)]))
        output += ["  ".join([f"{row['layer']:>5}", *(f"{row[key]:>{CELL}}" for key in part)]) for row in rows]
    return output


def layer_cell(layer: LayerReport, key: str, floor: float) -> str:
    if key == "order":
        return " ".join(f"{round(order, 2) + 0.0:.2f}" for order in layer.orders.values())
    return show_residual(getattr(layer, key), floor) if key in RESIDUALS else show_value(getattr(layer, key))


def show_residual(residual: float | None, floor: float) -> str:
    """Format a residual, with ~ before a value that is rounding."""
    return f"{'~' * (residual is not None and residual < floor)}{show_value(residual)}"


def show_value(value: float | int | None) -> str:
    if not value or isinstance(value, int):
        return "" if value is None else f"{value:.0f}"
    size = abs(value)
    return f"{value:{'.3f' if 0.01 <= size < 100 else '.1f' if 100 <= size < 1e5 else '.1e'}}"


def variants_lines(report: StreamReport) -> list[str]:
    """Return a line with the residual of every variant at the last layer."""
    last = {name: show_residual(values[-1], report.floor) or "none" for name, values in report.variants.items()}
    line = "residual of the last layer: " + ", ".join(f"{name} {residual}" for name, residual in last.items())
    return [line + " (~: rounding)" * ("~" in line)]


def interventions_table(report: StreamReport) -> list[str]:
    """Return the table of interventions."""
    rows = [("as it is", report.layers[-1].residual, report.layers[0].gradient)]
    rows += [(outcome.name, outcome.last, outcome.gradient) for outcome in report.interventions]
    width = max(len(name) for name, *_ in rows)
    header = [f"{'changed':{width}}  {'residual':>9}  {'gradient':>9}"]
    return header + [
        f"{name:{width}}  {show_residual(last, report.floor):>9}  {show_value(gradient):>9}"
        for name, last, gradient in rows
    ]


def report_text(reports: Iterable[StreamReport], name: str, width: int | None = None) -> str:
    return "\n\n".join("\n".join(report_lines(report, name, width)) for report in reports)


COMPARED = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
LISTS = ("layer", "name", "parts", "orders", "head_gradients")  # fields of a layer that are no single quantity
COLUMNS = tuple(name for name in LayerReport.__dataclass_fields__ if name not in LISTS)
PLACES = ("first", "last", "min", "max")
FORM = re.compile(r"\s*([a-z_]+)(?:\[(-?\d+)\])?\s*(<=|>=|<|>)\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*")


@dataclass(frozen=True)
class Condition:
    """A comparison of one quantity of a report with a number."""

    text: str
    column: str
    place: str | int  # a layer, or one of PLACES
    compared: str
    limit: float

    def holds(self, report: StreamReport) -> bool | None:
        """Return whether the condition holds, or None if this stream lacks the quantity."""
        value = self.value(report)
        return None if value is None else COMPARED[self.compared](value, self.limit)

    def value(self, report: StreamReport) -> float | None:
        values = [getattr(layer, self.column) for layer in report.layers]
        if self.place in ("min", "max"):
            known = [float(value) for value in values if value is not None]
            return (min if self.place == "min" else max)(known) if known else None
        place = {"first": 0, "last": -1}.get(str(self.place), self.place)
        if not -len(values) <= int(place) < len(values):
            raise RankfallError(f"--fail-if {self.text!r}: there is no layer {place}, layers are 0 to {report.depth}")
        value = values[int(place)]
        return None if value is None else float(value)


def condition(text: str) -> Condition:
    """Parse a condition. The error names the supported quantities."""
    match = FORM.fullmatch(text)
    if match is None:
        raise RankfallError(
            f'--fail-if {text!r}: write a quantity, one of < <= > >=, and a number, for example "residual_last < 0.1"'
        )
    name = match[1]
    if match[2] is not None:
        place: str | int = int(match[2])
        column = name
    else:
        column, _, place = name.rpartition("_")
        if place not in PLACES:
            column, place = name, ""
    if column not in COLUMNS or place == "":
        allowed = [f"{quantity}_{end}" for quantity in COLUMNS for end in PLACES]
        form = f"it is a column ({', '.join(COLUMNS)}) and _first, _last, _min, _max or [layer]"
        raise RankfallError(f"--fail-if {text!r}: no quantity {name!r}; {form}" + suggest(name, allowed))
    return Condition(text, column, place, match[3], float(match[4]))
