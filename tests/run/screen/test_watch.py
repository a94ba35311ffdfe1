"""Guards `rankfall status --watch`: what another process wrote down about its run is shown until the run ends or its process is dead."""

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rankfall import cli
from rankfall.run.screen import watch
from rankfall.run.screen.state import RunState
from rankfall.run.screen.watch import RunRecord

LOG = (
    "12 cells: 4 in store, 8 to train\n8/12 cells; stack of 4: step 50/100, 60 member-steps/s, loss 1 to 2, 3 s left\n"
)


def begun(results: Path, pid: int) -> RunRecord:
    """A run with one job that trains and one that has failed."""
    state = RunState(began=1000.0)
    events: list[dict[str, Any]] = [
        {"event": "run_info", "stats": {"train": 2, "total": 2}},
        {
            "event": "job_info",
            "time": 1000.0,
            "jobid": 1,
            "rule_name": "train",
            "wildcards": {"task": "sorting", "shard": "0", "digest": "ab"},
        }
        | {"output": ["results/work/train/sorting/0/ab.cells.parquet"], "log": ["results/logs/train/sorting/0/ab.log"]},
    ]
    log = results / "logs" / "train" / "sorting" / "0" / "ab.log"
    log.parent.mkdir(parents=True)
    log.write_text(LOG)
    made = RunRecord(Path("results"), Path("config.yaml"), "make run", pid, state)
    made.path = watch.record_file(results)
    made.add(events)
    return made


def on_each_pause(monkeypatch: pytest.MonkeyPatch, steps: list[Callable[[], Any]]) -> None:
    left = iter(steps)
    monkeypatch.setattr("rankfall.run.screen.watch.time.sleep", lambda _: next(left)())


def test_a_run_is_shown_until_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From another folder than its own: logs are found where the results are."""
    results = tmp_path / "elsewhere"
    made = begun(results, os.getpid())
    seen = watch.read_state(results)
    assert seen.reached["1"].cells == 8 and seen.reached["1"].rate == 60
    finish = {"event": "job_finished", "time": 1030.0, "job_id": 1}
    on_each_pause(monkeypatch, [lambda: None, lambda: made.add([finish, {"event": "rankfall_ended", "how": "ended"}])])
    assert cli.main(["status", "--watch", "--config", "none.yaml", "--results", str(results)]) == 0
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith(f"make run on {socket.gethostname()} (process {os.getpid()}): [0/2] ")
    assert "running: train sorting 0" in first
    assert last.endswith("ended: 1 of 2 jobs done after " + last.rpartition("after ")[2])


@pytest.mark.parametrize(("how", "said"), [("failed", "failed"), ("stopped", "stopped"), ("running", "was killed")])
def test_a_run_that_did_not_end_well_is_status_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], how: str, said: str
) -> None:
    made = begun(tmp_path, 2**22 + 1)  # no process has this number
    made.add([{"event": "rankfall_ended", "how": how}] if how != "running" else [])
    assert watch.watch(tmp_path, terminal=False) == 1
    assert f" {said}: 0 of 2 jobs done" in capsys.readouterr().out
