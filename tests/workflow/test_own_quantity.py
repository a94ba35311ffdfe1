"""Guards that a quantity of a user is as whole as ours: a folder outside the package gives a table, a column of the scorecard, a figure, a
chart and a sentence, and an edit of one of its files makes stale what is made of that file."""

import subprocess
import sys
from pathlib import Path

import own_quantity
import pytest
from checkout import CONFIG, Checkout
from own_quantity import import_from_here  # noqa: F401

from rankfall.run.plan import make_plan
from rankfall.run.snakemake.jobs import PlanJobs

OWN = CONFIG | own_quantity.CONFIG | {"page": True}
EDITS = (
    ("measure.py", "samples: int = 16", "samples: int = 5", {"measure entropy", "scorecard", "figure", "page"}),
    ("shown.py", "entropy float [nats]", "entropy float [nat]", {"scorecard", "figure", "page"}),
    ("shown.py", "at the last layer", "after the last layer", {"scorecard", "page"}),
    ("shown.py", "looks at.", "reads.", {"scorecard", "page"}),
    ("figure.py", "by layer on", "by block on", {"figure", "page"}),
)


def digests() -> dict[str, str]:
    jobs = PlanJobs(make_plan(OWN))
    (place,) = jobs.plan.shards
    named = {"train": ("train", *place), "measure entropy": ("measure", "entropy", *place), "page": ("page",)}
    named |= {"scorecard": ("measure", "scorecard"), "figure": ("figure", "entropy")}
    return {name: jobs.job(*key).digest for name, key in named.items()}


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


@pytest.mark.slow
def test_it_runs_from_end_to_end(tmp_path: Path) -> None:
    checkout = Checkout.make(tmp_path / "checkout", OWN)
    folder = own_quantity.write(checkout.folder)
    checkout.run()
    assert (checkout.results / "figures" / "entropy.png").is_file()
    page = (checkout.results / "report" / "index.html").read_text()
    assert 'id="chart-entropy"' in page and "Who looks at most tokens?" in page
    environment = checkout.environment() | {"PYTHONPATH": "src"}
    for name, text in (("lab.entropy", "of a row of attention weights [nats]"), ("scorecard", "entropy_last")):
        command = [sys.executable, "-m", "rankfall.cli", "table", name, "--results", "results"]
        done = subprocess.run(command, cwd=checkout.folder, env=environment, capture_output=True, text=True)
        assert done.returncode == 0 and text in done.stdout, done.stderr
    shown = folder / "shown.py"
    shown.write_text(shown.read_text().replace("at the last layer", "after the last layer"))
    second = checkout.run()
    assert second.trained == 0 and second.jobs["page"] == 1 and second.jobs["measure"] == 0
