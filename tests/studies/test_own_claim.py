"""Guards that a claim of a user is as whole as ours: a folder outside the package gives evidence, a verdict and a refusal by name."""

from pathlib import Path

import component_pages
import pandas as pd
import pytest
from checkout import Checkout
from own_quantity import import_from_here  # noqa: F401

from rankfall.components import load
from rankfall.errors import RankfallError
from rankfall.overview.claims import decide
from rankfall.report.claim import claims, load_claim
from rankfall.run.plan import make_plan

EXPERIMENT = '''
"""Squares."""

from rankfall import evidence_row


def squares_grow(context, *, seeds: int = 3):
    numbers = [(x, seed) for x in (1, 2, 3) for seed in range(seeds)]
    names = ("squares_grow", "squares_shrink")
    return [evidence_row(name, "square, by number", "x", x, seed, x * x + seed) for name in names for x, seed in numbers]
'''
RULE = '''
"""Squares grow."""

from rankfall import Threshold, band_of, compare, judge

ONE = Threshold(1.0, "above", "square, by number")
THRESHOLDS = (ONE,)


def decide(read):
    found = band_of(read("evidence"), "square, by number", "x", 3)
    return judge(f"The square of 3 is {found}.", found, holds=compare(found, ONE) == "above", contradicted=True)
'''
STATEMENT = """
says: Squares grow.
paper: 'Euclid: Elements, -300'
link: https://example.org/elements
seen: [text]
setting: Three numbers.
threshold: If the square of 3 is above that of 1.
"""
CONFIG = {"measures": {"claims": {}, "mine": {"measure": "mylab.squares_grow"}}}


def write(folder: Path, statement: str = STATEMENT, rule: str = RULE, experiment: str = EXPERIMENT) -> None:
    lab = folder / "mylab" / "squares_grow"
    lab.mkdir(parents=True)
    (lab / "experiment.py").write_text(experiment)
    (lab / "rule.py").write_text(rule)
    (lab / "statement.yaml").write_text(statement)


def users_claims() -> dict[str, str]:
    """Return name -> experiment of the claims that the plan has added."""
    return {claim.name: claim.table for claim in claims() if claim.table.startswith("mylab.")}


def test_it_is_found_where_its_experiment_is_measured(tmp_path: Path) -> None:
    """An edit of the statement or the rule decides again and measures nothing. Another claim may share the experiment."""
    write(tmp_path)
    plan = make_plan(CONFIG)
    assert plan.modules == ["mylab.squares_grow"] and users_claims() == {"squares_grow": "mylab.squares_grow"}
    files = [file for file in plan.measures["claims"].code if "squares_grow" in file]
    assert any(file.endswith("rule.py") for file in files) and any(file.endswith("statement.yaml") for file in files)
    assert not any(file.endswith(("rule.py", "statement.yaml")) for file in plan.measures["mine"].code)
    (tmp_path / "mylab/squares_grow/statement.yaml").write_text(STATEMENT.replace("Three numbers", "Four numbers"))
    other = tmp_path / "mylab" / "squares_shrink"
    other.mkdir()
    (other / "statement.yaml").write_text(f"experiment: squares_grow\n{STATEMENT}")
    (other / "rule.py").write_text(RULE)
    after = make_plan(CONFIG)
    assert plan.measures["claims"].fingerprint != after.measures["claims"].fingerprint
    assert plan.measures["mine"].fingerprint == after.measures["mine"].fingerprint
    assert users_claims() == dict.fromkeys(("squares_grow", "squares_shrink"), "mylab.squares_grow")
    assert any(file.endswith("squares_shrink/rule.py") for file in after.measures["claims"].code)
    make_plan({"measures": {"orders": {}}})
    assert users_claims() == {}


WRONG = {
    "a remembered source": (STATEMENT.replace("[text]", "[memory]"), RULE, r"seen.0 is 'memory': .*'table'"),
    "a remembered number": (
        f"{STATEMENT}published: [{{quantity: q, line: x, x: 1, value: 2, seen: second-hand, place: page 2}}]",
        RULE,
        r"published.0.seen is 'second-hand'",
    ),
    "an experiment of nobody": (f"experiment: cubes\n{STATEMENT}", RULE, "experiment is 'cubes'\nName a folder"),
    "no YAML": (STATEMENT + "- a", RULE, "statement.yaml is not YAML"),
    "a number of what": (
        STATEMENT,
        RULE.replace("(ONE,)", "(0.5,)"),
        r"thresholds.0 is 0.5.*\n.*Threshold\(0.5, 'above'",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_read_is_refused(tmp_path: Path, case: str) -> None:
    statement, rule, message = WRONG[case]
    write(tmp_path, statement, rule)
    with pytest.raises(RankfallError, match=message):
        load_claim("mylab.squares_grow")


def test_a_claim_that_cannot_be_read_stops_the_plan(tmp_path: Path) -> None:
    write(tmp_path, rule=RULE.replace("def decide", "def decides"))
    with pytest.raises(RankfallError, match="defines no function or class 'decide'"):
        make_plan(CONFIG)


def test_the_documentation_shows_a_claim_that_works(tmp_path: Path) -> None:
    shown = component_pages.files("claim")
    write(tmp_path, *(shown[f"lab/squares_grow/{file}"] for file in ("statement.yaml", "rule.py", "experiment.py")))
    make_plan(CONFIG)
    (claim,) = [claim for claim in claims() if claim.name == "squares_grow"]
    rows = pd.DataFrame(load("measure", "mylab.squares_grow")(None))
    decision = decide(claim, {"evidence": rows}.get)
    assert decision is not None and (decision.verdict, decision.number) == ("holds", 10.0)


@pytest.mark.slow
def test_a_run_decides_it(tmp_path: Path) -> None:
    checkout = Checkout.make(tmp_path / "checkout", CONFIG | {"figures": {"evidence": {}}, "page": True})
    write(
        checkout.folder, experiment=EXPERIMENT.replace(', "squares_shrink")', ",)")
    )  # of which there is no claim here
    checkout.run()
    (row,) = checkout.table("claims").to_pylist()
    assert (row["claim"], row["verdict"], row["number"], row["seeds"]) == ("squares_grow", "holds", 10.0, 3)
    assert 'id="claims-table"' in (checkout.results / "report" / "index.html").read_text()
    assert "Squares grow: Squares grow." in (checkout.results / "figures" / "evidence.rst").read_text()
    rule = checkout.folder / "mylab" / "squares_grow" / "rule.py"
    rule.write_text(rule.read_text().replace("Threshold(1.0", "Threshold(20.0"))
    again = checkout.run()
    assert again.jobs["measure_freely"] == 1, "the rule alone is applied anew"
    (row,) = checkout.table("claims").to_pylist()
    assert row["verdict"] == "contradicted"
