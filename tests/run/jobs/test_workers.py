"""Stacks of a job follow the memory of a GPU. Workers compute each stack once, all of them hear a signal, and each sees one GPU."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from cluster import wait_for
from helpers import cells

from rankfall.run.jobs import workers
from rankfall.run.jobs.engine import SHARE, Interrupted, Settings, members_at_once, stacks, stop_signals
from rankfall.run.plan.cost import member_megabytes

# Appends what it was given and what it sees to a file. The name of a cell says what befalls its worker.
WORKER = """
import json, os, signal, sys, time
print("hello")
for line in sys.stdin:
    (key, *_), done, total = json.loads(line)
    with open("seen", "a") as seen:
        print(key, done, total, os.environ.get("CUDA_VISIBLE_DEVICES"), os.getpid(), file=seen)
    if key == "full":
        sys.exit(2)
    if key == "slow":
        time.sleep(600)
    print("finished", flush=True)
"""
CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def start_other_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(self: workers.Workers, environment: dict[str, str]) -> "subprocess.Popen[str]":
        command, pipe = [sys.executable, "-c", WORKER], subprocess.PIPE
        worker = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=os.environ | environment)
        self.running.add(worker)
        return worker

    monkeypatch.setattr(workers.Workers, "start", start)
    monkeypatch.chdir(tmp_path)


def compute(names: str, number: int = 2) -> int:
    """Compute stacks of one cell each. Return how many are finished."""
    finished: list[int] = []
    work: Sequence[Any] = [[SimpleNamespace(key=name)] for name in names.split()]
    with stop_signals() as stopped:
        team = workers.Workers(Settings(CPU, workers=number), stopped, lambda: (0, len(work)), finished.append)
        try:
            team.compute(work)
        finally:
            assert not team.running
    return sum(finished)


def read_seen() -> list[list[str]]:
    return [line.split() for line in Path("seen").read_text().splitlines()]


def test_stacks_of_a_gpu_follow_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    many = cells(grid={"seed": "0..39"})
    member = member_megabytes(many[0].task, many[0].architecture, many[0].training)
    monkeypatch.setattr("rankfall.run.jobs.engine.free_megabytes", lambda device: 20 * member / SHARE)
    for device, limit, sizes in (
        ("cuda", 4096, [16, 16, 8]), ("cuda", 12, [12, 12, 12, 4]), ("cpu", 4096, [40]), ("cpu", 12, [12, 12, 12, 4]),
    ):  # fmt: skip
        settings = Settings(torch.device(device), limit)
        divided = stacks(many, lambda cell, settings=settings: members_at_once(cell, settings))  # type: ignore[misc]
        assert [len(stack) for stack in divided] == sizes


def test_each_stack_is_computed_once() -> None:
    names = " ".join(f"c{k}" for k in range(20))
    assert compute(names, 3) == 20
    assert sorted(words[0] for words in read_seen()) == sorted(names.split())
    assert len({words[-1] for words in read_seen()}) <= 3


def test_an_error_that_a_worker_reports_starts_nothing_more() -> None:
    """Another stack would meet the same full disk."""
    with pytest.raises(SystemExit) as end:
        compute("full a b c", 1)
    assert end.value.code == 2
    assert [words[0] for words in read_seen()] == ["full"]


def test_a_signal_reaches_all_workers() -> None:
    def stop() -> None:
        wait_for("both workers", lambda: Path("seen").exists() and len(read_seen()) == 2, 300)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=stop).start()
    with pytest.raises(Interrupted, match="SIGTERM"):
        compute("slow slow a b")
    assert {words[0] for words in read_seen()} == {"slow"}


@pytest.mark.parametrize(("visible", "expected"), [("2,5", {"2", "5"}), ("GPU-a", {"GPU-a"}), (None, {"None"})])
def test_each_worker_sees_one_gpu(monkeypatch: pytest.MonkeyPatch, visible: str | None, expected: set[str]) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    with workers.assign_gpus(4, CPU) as environments:
        assert {environment.get("CUDA_VISIBLE_DEVICES", "None") for environment in environments} == expected
    with workers.assign_gpus(4, torch.device("cuda:1")) as environments:
        assert environments == [{}] * 4  # all of them use the GPU that the configuration names


def test_a_shared_gpu_has_a_server_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A program stands in for NVIDIA's. Its clients see the GPU as number 0, and it ends with the job."""
    program = tmp_path / workers.MPS
    program.write_text(f'#!/bin/sh\necho "$CUDA_VISIBLE_DEVICES $CUDA_MPS_PIPE_DIRECTORY $1$(cat)" >> {tmp_path}/mps\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,5")
    cuda = torch.device("cuda")
    with workers.assign_gpus(2, cuda) as environments:
        assert environments == [{"CUDA_VISIBLE_DEVICES": gpu} for gpu in ("2", "5")]
    with workers.assign_gpus(4, cuda) as environments:
        assert {environment["CUDA_VISIBLE_DEVICES"] for environment in environments} == {"0"}
        folders = [environment["CUDA_MPS_PIPE_DIRECTORY"] for environment in environments]
        assert folders[:2] == folders[2:] and len(set(folders)) == 2
    calls = [line.split() for line in (tmp_path / "mps").read_text().splitlines()]
    assert calls[:2] == [["2", folders[0], "-d"], ["5", folders[1], "-d"]]
    assert sorted(calls[2:]) == sorted([["2", folders[0], "quit"], ["5", folders[1], "quit"]])
    assert not any(Path(folder).exists() for folder in folders)
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", "/run/site")
    with workers.assign_gpus(4, cuda) as environments:
        assert [environment["CUDA_VISIBLE_DEVICES"] for environment in environments] == ["2", "5", "2", "5"]
