"""How the workflow is wired: what every rule has, what no rule has, and that a configuration stands alone."""

import re
from pathlib import Path

import pytest
import yaml
from checkout import ROOT, Checkout

from rankfall.run.plan import make_plan
from rankfall.run.snakemake.run_plan import RunPlan

PRESETS = [ROOT / "config.yaml", *sorted((ROOT / "workflow" / "presets").glob("*.yaml"))]
QUICK = {"smoke", "config"}


def rules() -> dict[str, str]:
    """Name -> text of each rule outside the Snakefile."""
    text = "\n".join(path.read_text() for path in sorted((ROOT / "workflow" / "rules").glob("*.smk")))
    parts = re.split(r"^rule (\w+):$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def test_every_rule_logs_and_calls_the_command_line() -> None:
    assert {"data", "train", "measure", "table", "figure"} <= set(rules())
    for name, text in rules().items():
        body = text.replace("{{", "{").replace("}}", "}")  # as an f-string leaves it
        assert re.search(r"^    log:", body, re.MULTILINE), name
        assert re.search(
            r"^    shell:\n(        #.*\n)*        f?\"(exec )?python -m rankfall\.cli ", body, re.MULTILINE
        ), name
        assert "{log:q} 2>&1" in body, name
        assert "{PLANNED}" in body, name
        assert not re.search(r"\{(output|input|log|params)[^}:]*\}", body), (name, "a value that is not quoted")
        assert "{{digest}}" in text and "inputs(" in text, (name, "files are named by what they are made of")
        for unwanted in ("retries:", "script:", "run:", "notebook:"):
            assert not re.search(rf"(^|[^\w`]){re.escape(unwanted)}", body, re.MULTILINE), (name, unwanted)


def test_profiles_schedule_greedily_and_hold_the_retries() -> None:
    for path in (ROOT / "workflow" / "profiles").glob("*/config.yaml"):
        profile = yaml.safe_load(path.read_text())
        assert profile["scheduler"] == "greedy", path
        assert profile["retries"] >= 1, path
        assert profile["ignore-incomplete"] and profile["rerun-triggers"] == "mtime", path


@pytest.mark.parametrize(
    "path", [pytest.param(one, id=one.stem, marks=[pytest.mark.long] * (one.stem not in QUICK)) for one in PRESETS]
)
def test_presets_are_valid_and_keep_to_their_own_folder(path: Path) -> None:
    plan = make_plan(path)
    assert plan.cells or all(measure.needs != "cells" for measure in plan.measures.values())
    assert plan.figures
    assert plan.config.results == ("results" if path.name == "config.yaml" else f"results/{path.stem}")


def test_a_preset_replaces_the_default(tmp_path: Path) -> None:
    checkout = Checkout.make(tmp_path / "checkout")
    done = checkout.run("--dry-run", "--printshellcmds", "--configfile", "workflow/presets/smoke.yaml")
    assert "results/smoke/work/table/paths/" in done.output
    raw = yaml.safe_load((checkout.folder / "workflow" / "presets" / "smoke.yaml").read_text())
    assert f"--config {RunPlan.make(make_plan(raw), raw).config} " in done.output
    assert not checkout.results.exists(), "a dry run leaves nothing"
