"""Guards when the page is made again: when a table, a figure, or the page's own code, script or style is another; and only then."""

import hashlib
import json
from pathlib import Path

import pytest
from plans import VALID, changed

from rankfall.report.page.build import SCRIPTS
from rankfall.run.plan import make_plan
from rankfall.run.snakemake import job_fingerprints as module
from rankfall.run.snakemake.job_fingerprints import PAGE_ROOTS, JobFingerprints, page_files
from rankfall.run.snakemake.outputs import Outputs
from rankfall.run.snakemake.up_to_date import PAGE_MARK, _of_page, inspect_outputs
from rankfall.run.snakemake.wiring import Wiring

CONFIG = changed("page", True, changed("figures", {"paths": {}}))


def digest(config: dict = CONFIG) -> str:
    return JobFingerprints(make_plan(config)).page().digest


@pytest.mark.long
def test_it_follows_tables_figures_and_its_own_files(monkeypatch: pytest.MonkeyPatch) -> None:
    before = digest()
    assert digest() == before
    assert digest(changed("compute", {"stack": 7}, CONFIG)) == before
    assert digest(changed("grid/0/seed", [0, 1], CONFIG)) != before  # other tables
    assert digest(changed("figures/paths", {"columns": 2}, CONFIG)) != before  # another figure
    assert digest(changed("name", "other", CONFIG)) != before  # it is the title
    names = {"page.css", "page.html", *(f"script/{name}.js" for name in SCRIPTS)}
    assert {f"rankfall/report/page/{name}" for name in names} == set(page_files())
    files = JobFingerprints(make_plan(CONFIG)).page().files()
    assert {
        "rankfall/rank/residuals/chart.py",
        "rankfall/rank/residuals/sentence.py",
        "rankfall/rank/residuals/headline.py",
        "rankfall/report/headlines.py",
        "rankfall/report/page/script/panel.js",
    } <= set(files)
    assert "rankfall.report.page.build" in PAGE_ROOTS
    monkeypatch.setattr(module, "page_files", lambda: {"rankfall/report/page/script/panel.js": "edited"})
    assert digest() != before


def test_it_is_looked_at_and_asked_for(tmp_path: Path) -> None:
    plan, outputs = make_plan(CONFIG), Outputs.under(tmp_path)
    assert outputs.page in inspect_outputs(plan, JobFingerprints(plan), outputs).missing
    path = Path(outputs.page)
    path.parent.mkdir()
    path.write_text(kept("<p>old</p>", {"made": "0" * 24, "made_of": "{}"}))
    assert outputs.page in inspect_outputs(plan, JobFingerprints(plan), outputs).stale
    path.write_text(kept("<p>new</p>", JobFingerprints(plan).page().record()))
    found = inspect_outputs(plan, JobFingerprints(plan), outputs)
    assert outputs.page not in found.missing and outputs.page not in found.stale
    path.write_text(path.read_text().replace("new", "edited by hand"))
    assert outputs.page in inspect_outputs(plan, JobFingerprints(plan), outputs).stale


def kept(text: str, record: dict[str, str]) -> str:
    known = record | {"page": hashlib.sha256(text.encode()).hexdigest()[:24]}
    return f"{text}{PAGE_MARK}{json.dumps(known)} -->\n"


def test_a_page_without_a_record_is_made_again(tmp_path: Path) -> None:
    page = tmp_path / "index.html"
    assert _of_page(str(page)) is None
    for text in ("", "<html>", "<!-- made: [] -->\n", "<!-- made: {} -->\n"):
        page.write_text(text)
        assert _of_page(str(page)) == {}


def test_a_configuration_can_do_without() -> None:
    assert VALID["page"] is False
    assert "results/report/index.html" in Wiring(CONFIG).targets(None)
    assert "results/report/index.html" not in Wiring(changed("page", False, CONFIG)).targets(None)
    assert set(Wiring(CONFIG).page_inputs(None)) == set(Wiring(changed("page", False, CONFIG)).targets(None))
