"""Guards docs/question.md: its configuration is planned, and each of its lines of pandas reads columns that its table has."""

import re
from pathlib import Path

import pytest
import yaml

from rankfall import components
from rankfall.report.conform import conform
from rankfall.report.schema import schema
from rankfall.run.plan.build import make_plan

PAGE = (Path(__file__).parents[2] / "docs" / "question.md").read_text()
ROWS = re.findall(r"^\| ([^|]+\?) \| ([^|]+) \| [^|]* \| `(t[.\[][^`]+)`", PAGE, re.MULTILINE)
SETTING = ["task", "training", "depth", "architecture"]


def test_its_configurations_are_planned():
    parts, whole = (yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL))
    assert len(make_plan(whole).cells) == len(make_plan(whole | parts).cells) == 20
    assert f"`c = {SETTING}`".replace("'", '"') in PAGE


@pytest.mark.parametrize(("question", "measures", "line"), ROWS, ids=lambda text: text[:30])
def test_a_line_of_pandas_reads_its_table_and_compares_networks_of_one_setting(question, measures, line):
    """On an empty table: a column or a method that is not there is an error all the same. Trained networks and untrained ones were
    averaged, and tasks: SAN learned 0.46 +- 0.36 of the default run."""
    named = re.findall(r"`(\w+)`", measures)
    tables = [components.describe("measure", name).facts["TABLE"] for name in named] or ["cells"]
    results = []
    for name in tables:
        t = conform(name, []).to_pandas()
        t = t.astype({column: "float64" for column in t.columns if t[column].dtype.kind in "if"})
        try:
            results.append(eval(line, {"t": t, "c": SETTING}))
        except (AttributeError, KeyError):
            results.append(None)
    assert any(result is not None for result in results), f"{question}: {line}"
    if any(schema(name).cells for name in tables):
        assert "groupby(c)" in line or "groupby([*c, " in line, question
