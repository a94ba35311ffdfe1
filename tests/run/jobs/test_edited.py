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
from rankfall.run.guards import Unproved, check_unchanged
from rankfall.run.jobs.progress import Progress
from rankfall.run.plan import make_plan
from rankfall.run.store import Store

pytestmark = [pytest.mark.long, pytest.mark.own_process]

SHARP = "def sharp(logits):\n    return (2 * logits).softmax(-1)\n"
EDIT = SHARP.replace("2", "3")
TRAIN = ["train", "--config", "config.json", "--task", "sorting", "--shard", "0", "--out", "t.parquet"]
NAMES = ("edited_one", "edited_two")


@pytest.fixture
def project(lab: Path) -> Path:
    """Write two normalisers in modules of their own, for two architectures: each is imported with its own stack."""
    raw = config(training={"epochs": 2}, compute={"threads": 1, "checkpoint_seconds": 1e-9})
    raw["architectures"] = {name: {"depth": 1, "width": 8, "normaliser": f"{name}:sharp"} for name in NAMES}
    raw["grid"][0] |= {"architecture": [*NAMES], "seed": [0, 1]}
    (lab / "config.json").write_text(json.dumps(raw))
    edit(lab, SHARP)
    for name in NAMES:
        sys.modules.pop(name, None)
    return lab


def edit(project: Path, text: str | None) -> None:
    """Write or delete the normalisers."""
    for name in NAMES:
        if text is None:
            (project / f"{name}.py").unlink(missing_ok=True)
        else:
            (project / f"{name}.py").write_text(text)


def after(monkeypatch: pytest.MonkeyPatch, method: str, act: Callable[[], object]) -> None:
    """Call a function when a job tells of its progress."""
    tell = getattr(Progress, method)

    def tell_and_act(self: Progress, *arguments: Any, **options: Any) -> None:
        tell(self, *arguments, **options)
        act()

    monkeypatch.setattr(Progress, method, tell_and_act)


@pytest.mark.parametrize(
    ("text", "event"),
    [(EDIT, "begin"), (EDIT, "begin_stack"), ("def sharp(logits:\n", "begin"), (None, "begin_stack")],
)
def test_an_edit_while_a_job_runs_is_kept_under_no_key(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], text: str | None, event: str
) -> None:
    """Edited, half edited or deleted, before components are imported or while a stack is trained."""
    after(monkeypatch, event, lambda: edit(project, text))
    assert cli.main(TRAIN) == 2
    error = capsys.readouterr().err
    assert re.search(r"error: .*edited_(one|two)", error)
    if text == EDIT or event == "begin_stack":
        assert "changed since this run was planned; nothing was stored under a wrong key" in error
    assert not list(Store(project / "results" / "store").records())


def test_no_program_of_an_edited_text_is_kept_under_the_planned_key(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the trial of a text is remembered, the first import is that of the comparison with autograd. A program that was traced there
    from an edited text was kept under the digest of the planned one, and no later job agreed with autograd."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(project / "cache"))
    with monkeypatch.context() as patch:
        patch.setattr("rankfall.run.jobs.checks.find_refused_cells", lambda *arguments: {})
        patch.setattr("rankfall.run.jobs.checks.check_engines", lambda cells, device: edit(project, EDIT))
        assert cli.main(TRAIN) == 2
    assert "changed since this run was planned" in capsys.readouterr().err
    edit(project, SHARP)
    for name in NAMES:
        sys.modules.pop(name, None)
    assert cli.main(TRAIN) == 0


def test_data_of_a_task_that_is_edited_meanwhile_are_not_kept(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "from rankfall.tasks.sorting import sorting\nINPUTS = 'tokens'\nTARGETS = 'classes'\n"
    text += "def drawn(rng):\n    return sorting(rng, train=64, test=32, length=5, symbols=6)\n"
    task = project / "edited_data.py"
    task.write_text(text)
    (project / "config.json").write_text(json.dumps(config() | {"tasks": {"sorting": {"task": "edited_data:drawn"}}}))
    check = "rankfall.run.jobs.checks.check_engines"
    monkeypatch.setattr(check, lambda cells, device: task.write_text(text.replace("64", "65")))
    assert cli.main(TRAIN) == 2
    assert not list((project / "results").rglob("*.safetensors"))


def test_every_file_counts(tmp_path: Path) -> None:
    """A text of the user's, another Python's topics, the package's data, a file that is gone."""
    raw = config(architecture={"depth": 1})
    (tmp_path / "text.txt").write_text("to be or not to be " * 40)
    raw["tasks"]["sorting"] = {"task": "memorization", "text": str(tmp_path / "text.txt")}
    (cell,) = make_plan(raw).cells
    check_unchanged(cell.code)
    check_unchanged(cell.data_code)
    (tmp_path / "text.txt").write_text("that is the question")
    with pytest.raises(Unproved, match=r"text\.txt changed since this run was planned"):
        check_unchanged(cell.code)
    for name in ("pydoc_data.topics", "rankfall/rank/paths/published.csv", "rankfall/gone.py", "gone.txt"):
        with pytest.raises(Unproved, match=name):
            check_unchanged({name: "0" * 12})
