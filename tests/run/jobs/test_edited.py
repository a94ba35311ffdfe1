"""An edit while a job runs: what was hashed at its start hashes to the same at its end, or nothing is kept."""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers import config

from rankfall import cli
from rankfall.run.guards import Edited, check_unchanged
from rankfall.run.jobs.progress import Progress
from rankfall.run.plan import Plan, make_plan
from rankfall.run.store import Store

pytestmark = [pytest.mark.long, pytest.mark.own_process]

SHARP = "def sharp(logits):\n    return (2 * logits).softmax(-1)\n"
EDIT = SHARP.replace("2", "3")


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two normalisers in modules of their own, for two architectures: each is imported with its own stack."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("edited_one", "edited_two"):
        (tmp_path / f"{name}.py").write_text(SHARP)
        sys.modules.pop(name, None)
    raw = config(training={"epochs": 2}, compute={"threads": 1, "checkpoint_seconds": 1e-9})
    raw["architectures"] = {
        name: {"depth": 1, "width": 8, "normaliser": f"edited_{name}:sharp"} for name in ("one", "two")
    }
    raw["grid"][0] |= {"architecture": ["one", "two"], "seed": [0, 1]}
    (tmp_path / "config.json").write_text(json.dumps(raw))
    return tmp_path


def edit(lab: Path, text: str) -> None:
    for name in ("edited_one", "edited_two"):
        (lab / f"{name}.py").write_text(text)


def train(plan: Plan) -> int:
    ((task, shard),) = plan.shards
    return cli.main(
        [
            "train",
            "--config",
            "config.json",
            "--results",
            "results",
            "--task",
            task,
            "--shard",
            shard,
            "--out",
            "t.parquet",
        ]
    )


def when(monkeypatch: pytest.MonkeyPatch, method: str, act: Callable[[], object]) -> None:
    """Do something when a job tells of its progress."""
    told = getattr(Progress, method)

    def telling(self: Progress, *rest: Any, **named: Any) -> None:
        told(self, *rest, **named)
        act()

    monkeypatch.setattr(Progress, method, telling)


@pytest.mark.parametrize(
    ("text", "event"),
    [(EDIT, "begin"), (EDIT, "begin_stack"), ("def sharp(logits:\n", "begin"), (None, "begin_stack")],
)
def test_an_edit_while_a_job_runs_is_kept_under_no_key(
    lab: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], text: str | None, event: str
) -> None:
    """Edited, half edited or deleted, before components are imported or while a stack is trained: nothing of it is kept, and the next
    run computes by the text that is there then."""
    plan = make_plan(lab / "config.json")

    def disturb() -> None:
        if text is not None:
            edit(lab, text)
            return
        for name in ("edited_one", "edited_two"):
            (lab / f"{name}.py").unlink(missing_ok=True)

    with monkeypatch.context() as patch:
        when(patch, event, disturb)
        assert train(plan) == 2
    said = capsys.readouterr().err
    assert re.search(r"error: .*edited_(one|two)", said)
    assert (
        text != EDIT and event == "begin"
    ) or "changed since this run was planned; nothing was stored under a wrong key" in said
    assert not list(Store(lab / "results" / "store").records())


def test_no_program_of_an_edited_text_is_kept_under_the_planned_key(
    lab: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Where the trial of a text is remembered, the first import is that of the comparison with autograd. A program that was traced there
    from an edited text was kept under the digest of the planned one, and no later job agreed with autograd."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    plan = make_plan(lab / "config.json")
    with monkeypatch.context() as patch:
        patch.setattr("rankfall.run.jobs.checks.find_refused_cells", lambda *given: {})
        patch.setattr("rankfall.run.jobs.checks.check_engines", lambda cells, device: edit(lab, EDIT))
        assert train(plan) == 2
    assert "changed since this run was planned" in capsys.readouterr().err
    edit(lab, SHARP)
    for name in ("edited_one", "edited_two"):
        sys.modules.pop(name, None)
    assert train(plan) == 0


def test_data_of_a_task_that_is_edited_meanwhile_are_not_kept(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "from rankfall.tasks.sorting import sorting\nINPUTS = 'tokens'\nTARGETS = 'classes'\n"
    text += "def drawn(rng):\n    return sorting(rng, train=64, test=32, length=5, symbols=6)\n"
    (lab / "edited_data.py").write_text(text)
    raw = config()
    raw["tasks"] = {"sorting": {"task": "edited_data:drawn"}}
    (lab / "config.json").write_text(json.dumps(raw))
    plan, edited = make_plan(lab / "config.json"), text.replace("64", "65")
    monkeypatch.setattr(
        "rankfall.run.jobs.checks.check_engines", lambda cells, device: (lab / "edited_data.py").write_text(edited)
    )
    assert train(plan) == 2
    assert not list((lab / "results").rglob("*.safetensors"))


def test_every_file_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text of the user's, another Python's topics, the package's data, a file that is gone."""
    raw = config(architecture={"depth": 1})
    (tmp_path / "text.txt").write_text("to be or not to be " * 40)
    raw["tasks"]["sorting"] = {"task": "memorization", "text": str(tmp_path / "text.txt")}
    plan = make_plan(raw)
    (cell,) = plan.cells
    check_unchanged(cell.code)
    check_unchanged(cell.data_code)
    (tmp_path / "text.txt").write_text("that is the question")
    with pytest.raises(Edited, match=r"text\.txt changed since this run was planned"):
        check_unchanged(cell.code)
    for name in ("pydoc_data.topics", "rankfall/rank/paths/published.csv", "rankfall/gone.py", "gone.txt"):
        with pytest.raises(Edited, match=name):
            check_unchanged({name: "0" * 12})
