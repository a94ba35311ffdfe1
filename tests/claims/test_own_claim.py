"""Guards that a claim of a user is as whole as ours: a folder outside the package gives evidence, a verdict and a refusal by name."""

from pathlib import Path

import component_pages
import pandas as pd
import pytest
from checkout import Checkout
from own_quantity import import_from_here  # noqa: F401

from rankfall.components import load
from rankfall.errors import RankfallError
from rankfall.overview.claims.measure import decide
from rankfall.report.claim import claims
from rankfall.run.plan import make_plan

MEASURE = '''
"""Squares."""

from rankfall.claims.rows import row

TABLE = "evidence"
NEEDS = "nothing"


def squares(context, *, seeds: int = 3):
    return [row("squares_grow", "square, by number", "x", x, seed, x * x + seed) for x in (1, 2, 3) for seed in range(seeds)]
'''
CLAIM = '''
"""Squares grow."""

from rankfall.report.claim import CONTRADICTED, HOLDS, Claim, Decision, band_of, compare


def decide(read):
    found = band_of(read("evidence"), "square, by number", "x", 3)
    grow = compare(found, 1.0) == "above"
    return Decision(HOLDS if grow else CONTRADICTED, f"The square of 3 is {found}.", **found.fields())


CLAIMS = (
    Claim("squares_grow", "Squares grow.", "Euclid: Elements, -300", "https://example.org/elements", ("text",), "Three numbers.",
          "If the square of 3 is above that of 1.", decide),
)
'''
CONFIG = {"measures": {"claims": {}, "mine": {"measure": "mylab.squares"}}}


def write(folder: Path, claim: str = CLAIM, measure: str = MEASURE) -> None:
    own = folder / "mylab" / "squares"
    own.mkdir(parents=True)
    (own / "__init__.py").write_text("")
    (own.parent / "__init__.py").write_text("")
    (own / "measure.py").write_text(measure)
    (own / "claim.py").write_text(claim)


def test_it_is_found_where_its_experiment_is_measured(tmp_path: Path) -> None:
    write(tmp_path)
    plan = make_plan(CONFIG)
    assert plan.modules == ["mylab.squares"] and "squares_grow" in {claim.name for claim in claims()}
    assert any(file.endswith("mylab/squares/claim.py") for file in plan.measures["claims"].code)
    assert not any(file.endswith("claim.py") for file in plan.measures["mine"].code), (
        "an edit of a rule measures nothing again"
    )
    make_plan({"measures": {"orders": {}}})
    assert "squares_grow" not in {claim.name for claim in claims()}


def test_a_remembered_source_is_refused_before_anything_runs(tmp_path: Path) -> None:
    write(tmp_path, CLAIM.replace('("text",)', '("memory",)'))
    with pytest.raises(
        RankfallError, match=r"claim 'squares_grow' of mylab\.squares: seen is 'memory'; allowed: table"
    ):
        make_plan(CONFIG)


def test_a_broken_file_is_refused_before_anything_runs(tmp_path: Path) -> None:
    """Without a rule, and misspelt."""
    write(tmp_path, CLAIM.replace(" decide),", "),"))
    with pytest.raises(RankfallError, match=r"a claim cannot be read: .*'decide'"):
        make_plan(CONFIG)


def test_a_misspelt_name_is_refused_before_anything_runs(tmp_path: Path) -> None:
    write(tmp_path)
    with pytest.raises(RankfallError, match=r"'squares_grew' is not a claim.*did you mean 'squares_grow'"):
        make_plan({"measures": {**CONFIG["measures"], "claims": {"claims": ["squares_grew"]}}})


def test_the_documentation_shows_a_claim_that_works(tmp_path: Path) -> None:
    shown = component_pages.files("claim")
    write(tmp_path, shown["lab/squares/claim.py"], shown["lab/squares/measure.py"])
    make_plan(CONFIG)
    (claim,) = [one for one in claims() if one.name == "squares_grow"]
    rows = pd.DataFrame(load("measure", "mylab.squares")(None))
    found = decide(claim, {"evidence": rows}.get)
    assert found is not None and (found.verdict, found.number) == ("holds", 10.0)


@pytest.mark.slow
def test_a_run_decides_it(tmp_path: Path) -> None:
    checkout = Checkout.make(tmp_path / "checkout", CONFIG | {"figures": {"evidence": {}}, "page": True})
    write(checkout.folder)
    checkout.run()
    (row,) = checkout.table("claims").to_pylist()
    assert (row["claim"], row["verdict"], row["number"], row["seeds"]) == ("squares_grow", "holds", 10.0, 3)
    assert 'id="claims-table"' in (checkout.results / "report" / "index.html").read_text()
    assert "squares grow: The square of 3 is 10" in (checkout.results / "figures" / "evidence.rst").read_text()
    rule = checkout.folder / "mylab" / "squares" / "claim.py"
    rule.write_text(rule.read_text().replace("found, 1.0", "found, 20.0"))
    again = checkout.run()
    assert again.jobs["measure_freely"] == 1, "the rule alone is applied anew"
    (row,) = checkout.table("claims").to_pylist()
    assert row["verdict"] == "contradicted"
