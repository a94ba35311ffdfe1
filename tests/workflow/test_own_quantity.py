"""Guards that a quantity of a user is as whole as ours: a folder or a file outside the package gives a table, a column of the scorecard, a
figure, a chart and a sentence, and an edit of one of its files makes stale what is made of that file."""

import ast
import subprocess
import sys
from pathlib import Path

import component_pages
import own_quantity
import pytest
from checkout import CONFIG, Checkout
from own_quantity import import_from_here  # noqa: F401

from rankfall.run.plan import make_plan
from rankfall.run.snakemake.jobs import PlanJobs

OWN = CONFIG | own_quantity.CONFIG | {"page": True}


def test_the_documentation_shows_these_files() -> None:
    """In one file, whose last part has what the scorecard and the page show."""
    *_, (name, last) = component_pages.blocks("measure")
    assert name == "lab/entropy.py"
    written, (_, *shown) = (
        [ast.dump(node) for node in ast.parse(text).body if not isinstance(node, ast.ImportFrom)]
        for text in (last, own_quantity.FILES["shown.py"])
    )
    assert written == shown  # without `columns`


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


EDITS = (
    ("measure.py", "samples: int = 4", "samples: int = 5", {"rows", "scorecard", "figure", "page"}),
    ("shown.py", 'attention weights", unit="nats"', 'attention weights", unit="nat"', {"scorecard", "figure", "page"}),
    ("shown.py", "at the last layer", "after the last layer", {"scorecard", "page"}),
    ("shown.py", "looks at.", "reads.", {"scorecard", "page"}),
    ("figure.py", "by layer.", "by block.", {"figure", "page"}),
)


def test_an_edit_makes_stale_what_is_made_of_it(tmp_path: Path) -> None:
    """One edit after the other."""
    folder = own_quantity.write(tmp_path)
    before = digests()
    for file, old, new, stale in EDITS:
        text = (folder / file).read_text()
        assert old in text
        (folder / file).write_text(text.replace(old, new))
        after = digests()
        assert {name for name in before if before[name] != after[name]} == stale, new
        before = after


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
    head = place / "shown.py"
    head.write_text(head.read_text().replace("at the last layer", "after the last layer"))
    second = checkout.run()
    assert second.trained == 0 and second.jobs["page"] == 1 and second.jobs["measure"] == 0
