"""Guards that a quantity of a user is as whole as ours: a folder or a file outside the package gives a table, a column of the scorecard, a
figure, a chart and a sentence, and an edit of one of its files makes stale what is made of that file."""

import ast
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import component_pages
import own_quantity
import pytest
from checkout import CONFIG, Checkout
from own_quantity import import_from_here  # noqa: F401

from rankfall.errors import RankfallError
from rankfall.report.headlines import headlines
from rankfall.report.page.chart import charts
from rankfall.report.quantities import declarations_of
from rankfall.report.schema import schema
from rankfall.run.plan import make_plan
from rankfall.run.snakemake.jobs import PlanJobs

OWN = CONFIG | own_quantity.CONFIG | {"page": True}
WAYS = {"folder": own_quantity.write, "file": own_quantity.write_as_one_file}


@pytest.mark.parametrize("write", WAYS.values(), ids=WAYS)
def test_it_is_found_by_its_module(write: Callable[[Path], Path], tmp_path: Path) -> None:
    write(tmp_path)
    plan = make_plan(OWN)
    assert plan.modules == ["mylab.entropy"] and "mylab.entropy" in plan.measures["scorecard"].tables
    assert [one.study for one in headlines() if one.table == "mylab.entropy"] == ["rank"]
    assert "entropy_last" in {column.name for column in schema("scorecard").columns}
    assert "entropy" in {column.name for column in schema("mylab.entropy").columns}
    assert "entropy" in {chart.name for chart in charts()}
    assert declarations_of("sentence")[-1].name == "Who looks at most tokens?"
    make_plan(CONFIG)  # which has no such measure
    assert "entropy_last" not in {headline.name for headline in headlines()}


def test_the_documentation_shows_these_files() -> None:
    """In one file, whose last part has what the scorecard and the page show."""
    *_, (name, last) = component_pages.blocks("measure")
    assert name == "lab/entropy.py"
    shown = [ast.dump(node) for node in ast.parse(last).body if not isinstance(node, ast.ImportFrom)]
    files = [ast.parse(own_quantity.FILES[file]).body for file in ("headline.py", "chart.py", "sentence.py")]
    assert shown == [ast.dump(node) for file in files for node in file if not isinstance(node, ast.ImportFrom)]


def digests() -> dict[str, str]:
    plan = make_plan(OWN)
    jobs = PlanJobs(plan)
    place = next(iter(plan.shards))
    return {
        "cells": jobs.job("train", *place).digest,
        "rows": jobs.job("measure", "entropy", *place).digest,
        "scorecard": jobs.job("measure", "scorecard").digest,
        "figure": jobs.job("figure", "entropy").digest,
        "page": jobs.job("page").digest,
    }


EDITS = {
    "measure.py": ("samples: int = 4", "samples: int = 5", {"rows", "scorecard", "figure", "page"}),
    "columns.py": ('unit="nats"', 'unit="nat"', {"scorecard", "figure", "page"}),
    "headline.py": ("at the last layer", "after the last layer", {"scorecard", "page"}),
    "figure.py": ("by layer.", "by block.", {"figure", "page"}),
    "chart.py": ("looks at.", "reads.", {"page"}),
    "sentence.py": ("most tokens", "more tokens", {"page"}),
}


@pytest.mark.parametrize("file", EDITS)
def test_an_edit_makes_stale_what_is_made_of_it(file: str, tmp_path: Path) -> None:
    place = own_quantity.write(tmp_path) / file
    before = digests()
    old, new, stale = EDITS[file]
    assert old in place.read_text()
    place.write_text(place.read_text().replace(old, new))
    after = digests()
    assert {name for name in before if before[name] != after[name]} == stale


WRONG: dict[str, tuple[str, str, str, str]] = {
    "column": ("headline.py", '("layer", "entropy")', '("layer", "entropi")', "mylab.entropy has no column 'entropi'"),
    "axis": ("chart.py", 'x="layer"', 'x="layr"', "mylab.entropy has no column 'layr'"),
    "number": ("sentence.py", '"entropy_last"', '"entropy_first"', "there is no headline 'entropy_first'"),
    "table": ("columns.py", '"mylab.entropy",', '"entropy",', "calls its table 'entropy'"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_declaration_is_refused_before_any_work(case: str, tmp_path: Path) -> None:
    file, old, new, message = WRONG[case]
    place = own_quantity.write(tmp_path) / file
    assert old in place.read_text()
    place.write_text(place.read_text().replace(old, new))
    with pytest.raises(RankfallError) as caught:
        make_plan(OWN)
    assert message in str(caught.value) and "\n" not in str(caught.value)


def rankfall_table(checkout: Checkout, name: str) -> str:
    command = [sys.executable, "-m", "rankfall.cli", "table", name, "--results", "results"]
    environment = checkout.environment() | {"PYTHONPATH": "src"}
    done = subprocess.run(command, cwd=checkout.folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_it_runs_from_end_to_end(tmp_path: Path) -> None:
    checkout = Checkout.make(tmp_path / "checkout", OWN)
    place = own_quantity.write(checkout.folder)
    checkout.run()
    results = checkout.folder / "results"
    assert (results / "tables" / "mylab.entropy.parquet").is_file()
    assert (results / "figures" / "entropy.png").is_file()
    page = (results / "report" / "index.html").read_text()
    assert 'id="chart-entropy"' in page and "Who looks at most tokens?" in page
    shown = {name: rankfall_table(checkout, name) for name in ("mylab.entropy", "scorecard")}
    assert "of a row of attention weights [nats]" in shown["mylab.entropy"]
    assert "entropy_last" in shown["scorecard"]
    head = place / "headline.py"
    head.write_text(head.read_text().replace("at the last layer", "after the last layer"))
    second = checkout.run()
    assert second.trained == 0 and second.jobs["page"] == 1 and second.jobs["measure"] == 0
