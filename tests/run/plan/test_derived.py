"""Guards measures of tables, whose job waits for what they read, and measures that build networks, which depend on every part."""

from pathlib import Path

import pytest
from plans import changed

from rankfall.run.plan import make_plan
from rankfall.run.snakemake.jobs import PlanJobs

BOTH = changed("measures", {"paths": {}, "reproduction": {}})


def test_reads_what_is_made_and_waits_for_it() -> None:
    jobs = PlanJobs(make_plan(BOTH))
    assert jobs.plan.measures["reproduction"].tables == ("cells", "paths")
    measure = jobs.job("measure", "reproduction")
    assert measure.inputs == tuple(jobs.job("table", name).files[0] for name in ("cells", "paths"))
    assert jobs.job("table", "reproduction").inputs == tuple(measure.files)
    alone = PlanJobs(make_plan(changed("measures", {"reproduction": {}})))
    assert alone.job("measure", "reproduction").inputs == tuple(alone.job("table", "cells").files)  # every run makes it


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
