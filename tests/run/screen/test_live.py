"""Guards what is shown of a run: it follows from Snakemake's events, and from what jobs write into their logs."""

import io
from pathlib import Path
from typing import Any

import pytest
import torch

from rankfall.run.screen.left import TYPICAL, seconds_left
from rankfall.run.screen.logs import Reached, parse_log
from rankfall.run.screen.state import RunState
from rankfall.train.progress import Progress

TABLE = TYPICAL["table"]  # seconds
COSTS = {"a/0": ("train", 100.0, 30), "a/1": ("train", 50.0, 10)}


def event(kind: str, time: float = 0.0, **more: Any) -> dict[str, Any]:
    return {"event": kind, "time": time, "level": "INFO", **more}


def info(number: int, rule: str, output: str, **more: Any) -> dict[str, Any]:
    wildcards = {"task": "sorting", "shard": output[-1], "digest": "ab"}
    return event("job_info", jobid=number, rule_name=rule, wildcards=wildcards, output=[output], log=["no.log"]) | more


def state(*events: dict[str, Any], cores: int = 1) -> RunState:
    """Two training jobs and a table."""
    made = RunState(began=0.0, costs=COSTS)
    stats = {"train": 2, "table": 1, "all": 1, "total": 4}
    first = [event("run_info", stats=stats), event("resources_info", cores=cores), event("rankfall_began")]
    for one in [*first, *events]:
        made.take(one)
    return made


def test_jobs_are_counted_once_and_the_rule_that_only_asks_for_files_not_at_all() -> None:
    found = state(info(1, "train", "a/0", time=5.0), info(0, "all", "x"))
    assert (found.total, found.count, list(found.running)) == (3, 0, ["1"])
    assert found.running["1"].name == "train sorting 0"
    done = found.take(event("job_finished", 12.0, job_id=1))
    assert done is not None and done.seconds == 7.0
    assert found.take(event("job_finished", 12.0, job_id=1)) is None
    assert found.take(event("job_finished", 12.0, job_id=0)) is None
    assert (found.count, found.running) == (1, {})


def test_a_job_that_succeeds_when_it_is_tried_again_has_not_failed(tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    log.write_text("Traceback (most recent call last):\n  File x\nValueError: no such thing\n\n")
    found = state(info(1, "train", "a/0", log=[str(log)]))
    failed = found.take(event("job_error", 3.0, jobid=1))
    assert failed is not None and failed.error == "ValueError: no such thing"
    assert list(found.failed) == ["a/0"]
    for one in (info(1, "train", "a/0"), event("job_finished", 9.0, job_id=1)):
        found.take(one)
    assert (found.failed, found.count) == ({}, 1)


def test_time_left_is_the_estimate_over_the_cores_that_can_be_used() -> None:
    found = state()
    assert seconds_left(RunState(0.0), {}, 0.0) is None
    assert seconds_left(found, {}, 0.0) == pytest.approx(100 + 50 + TABLE)
    assert seconds_left(state(cores=2), {}, 0.0) == pytest.approx(100), "the longest job alone takes so long"
    started = state(info(1, "train", "a/0"))
    assert seconds_left(started, {}, 40.0) == pytest.approx(60 + 50 + TABLE)
    half = {"1": Reached(15, 30, 0.5)}
    assert seconds_left(started, half, 40.0) == pytest.approx(40 + 50 + TABLE), (
        "a job that says how far it is, is believed"
    )


def test_what_a_training_job_writes_is_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the very class that writes it."""

    class History:
        def mean(self, *_: Any) -> torch.Tensor:
            return torch.tensor([0.5, 1.5])

    class Members:
        step_count, device = 0, torch.device("cpu")

        def __len__(self) -> int:
            return 4

    now = [0.0]
    monkeypatch.setattr("rankfall.train.progress.time.monotonic", lambda: now[0])
    out, members = io.StringIO(), Members()
    progress = Progress(out)
    progress.begin(total=12, in_store=4)
    assert parse_log(out.getvalue()) == Reached(4, 12)
    progress.begin_stack(members, steps_per_epoch=10, epochs=10)  # type: ignore[arg-type]
    now[0], members.step_count = 20.0, 50
    progress.step(members, History())  # type: ignore[arg-type]
    found = parse_log(out.getvalue())
    assert found == Reached(4, 12, share=4 * 0.5 / 8, rate=10.0, detail="loss 0.5 to 1.5")
    progress.cells_done(4)
    now[0], members.step_count = 40.0, 100
    progress.step(members, History())  # type: ignore[arg-type]
    found = parse_log(out.getvalue())
    assert found is not None and (found.cells, found.of) == (8, 12)
