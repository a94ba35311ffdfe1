"""The page's first screen: three findings with their uncertainty, and one picture."""

from collections.abc import Mapping, Sequence
from typing import Any

from rankfall.report.page.findings import Finding

ASKED = ("rank", "position", "identity")  # the three questions


def choose_findings(found: Sequence[Finding]) -> list[Finding]:
    """Return up to three findings: one for each question, preferably one of a setting, which has means over seeds with a deviation; then
    others."""
    chosen: list[Finding] = []
    for study in ASKED:
        own = sorted((one for one in found if one.study == study), key=lambda one: not one.setting)
        chosen += own[:1]
    return (chosen + [one for one in found if one not in chosen])[:3]


def choose_picture(charts: Sequence[Mapping[str, Any]], opening: Sequence[str]) -> Mapping[str, Any] | None:
    """Return the first chart in `opening` that the run has, or else a chart of lines or points."""
    by_name = {chart["name"]: chart for chart in charts}
    return next((by_name[name] for name in opening if name in by_name), None) or next(
        (chart for chart in charts if chart["kind"] != "grid"), None
    )
