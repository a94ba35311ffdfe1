"""Guards measures of tables, whose job waits for what they read, and measures that build networks, which depend on every part."""

import json
from pathlib import Path

import pytest
from plans import changed

from rankfall import components
from rankfall.cli import main
from rankfall.report import tables
from rankfall.run.keys import files
from rankfall.run.plan import make_plan
from rankfall.run.snakemake.jobs import PlanJobs, page_files

BOTH = changed("measures", {"paths": {}, "reproduction": {}})


def test_reads_what_is_made_and_waits_for_it() -> None:
    jobs = PlanJobs(make_plan(BOTH))
    assert jobs.plan.measures["reproduction"].tables == ("cells", "paths")
    measure = jobs.job("measure", "reproduction")
    assert measure.inputs == tuple(jobs.job("table", name).files[0] for name in ("cells", "paths"))
    assert jobs.job("table", "reproduction").inputs == tuple(measure.files)
    alone = PlanJobs(make_plan(changed("measures", {"reproduction": {}})))
    assert alone.job("measure", "reproduction").inputs == tuple(alone.job("table", "cells").files)  # every run makes it


def test_files_of_facts_are_declared_where_they_are_read() -> None:
    """A fingerprint follows imports, not opened files: a component that reads one says so in DATA, and nothing else may but the page, whose
    statement has every file beside its code.
    """
    readers = {
        path.relative_to(files.PACKAGE).as_posix(): path.read_text(encoding="utf-8")
        for path in files.PACKAGE.rglob("*.py")
        if "importlib.resources" in path.read_text(encoding="utf-8")
    }
    assert "rank/models.py" in readers
    readers.pop("report/page/build.py")
    readers.pop("watch/page.py")  # of a command that no job runs
    page = [path for path in (files.PACKAGE / "report" / "page").rglob("*") if "__pycache__" not in path.parts]
    beside = [path for path in page if path.is_file() and path.suffix != ".py"]
    assert {Path(name).name for name in page_files()} == {path.name for path in beside}
    for file in readers:
        _, name, *last = file.removesuffix(".py").split("/")
        described = components.describe("measure" if last == ["measure"] else "figure", name)
        assert described is not None
        assert described.facts["DATA"], file
        assert all((files.PACKAGE / one).is_file() for one in described.facts["DATA"]), file


def test_a_measure_that_builds_networks_depends_on_every_part_they_may_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names components as data, so no import shows them; a part from outside the package counts too."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "orderlab.py").write_text("def sharp(logits):\n    return logits\n")
    plan = make_plan(changed("measures", {"orders": {"normalisers": ["softmax", "orderlab:sharp"]}, "paths": {}}))
    code = plan.measures["orders"].code
    for file in ("positions/rope", "masks/causal", "residuals/add", "sentinels/bos", "mlps/gelu", "inits/published"):
        assert f"rankfall/nets/{file}.py" in code
    assert "orderlab.py" in code
    # A measure of cells leaves the parts to the cells' keys.
    assert "rankfall/nets/positions/rope.py" not in plan.measures["paths"].code


@pytest.mark.long
def test_the_command_reads_tables_and_writes_one(tmp_path: Path) -> None:
    config, out = tmp_path / "config.json", tmp_path / "out.parquet"
    raw = BOTH | {"measures": {"reproduction": {}}}
    config.write_text(json.dumps(raw))
    tables.write("cells", [], tmp_path / PlanJobs(make_plan(raw)).job("table", "cells").files[0])
    options = {"config": config, "results": tmp_path, "measure": "reproduction", "out": out}
    assert main(["measure", *(str(part) for name, value in options.items() for part in (f"--{name}", value))]) == 0
    found = tables.read_frame(out, "reproduction")
    assert len(found) > 100 and found.ours.isna().all()
