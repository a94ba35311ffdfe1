"""Workers: several processes of one job, each of which computes one stack after another, on a GPU of its own if there are several.

The job divides its cells into stacks as it does without workers, so the results have the same bits. A worker is the job's own command with
`--worker`. It reads the cells of a stack from its input, and answers when their results are in the store. If a worker is killed, its stack
is left to the next attempt of the job, and a new worker computes the other stacks.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

import torch

from rankfall.errors import RankfallError
from rankfall.run.forks.client import ADDRESS
from rankfall.run.jobs.engine import Settings, Stopped, raise_if_stopped, visible_gpus

if TYPE_CHECKING:
    from rankfall.run.plan.cell import Cell

WAIT = 0.2  # seconds between looks at signals
FINISHED = "finished\n"  # answer of a worker
MPS = "nvidia-cuda-mps-control"  # NVIDIA's server by which kernels of several processes run on a GPU at the same time


class Workers:
    """The workers of a job. `finished` is called after each stack with its number of cells. `counts` returns the finished and all cells of
    the job, which the worker's lines in the log show."""

    def __init__(
        self,
        settings: Settings,
        stopped: Stopped,
        counts: Callable[[], tuple[int, int]],
        finished: Callable[[int], None],
    ) -> None:
        self.settings, self.stopped, self.counts, self.finished = settings, stopped, counts, finished
        self.waiting: deque[Sequence[Cell]] = deque()
        self.running = set[subprocess.Popen[str]]()
        self.killed: list[str] = []
        self.code = 0  # of a worker that has reported an error
        self.ending = False  # whether no further stack is started

    def compute(self, stacks: "Sequence[Sequence[Cell]]") -> None:
        """Compute all stacks. Raise `Interrupted` after a signal, which is passed on, and an error if a worker was killed. Exit with the
        code of a worker that has reported an error itself."""
        self.waiting.extend(stacks)
        number = min(self.settings.workers, len(stacks))
        with assign_gpus(number, self.settings.device) as environments, ThreadPoolExecutor(number) as pool:
            threads = [pool.submit(self.feed, environment) for environment in environments]
            try:
                while wait(threads, WAIT).not_done:
                    if self.stopped():
                        self.end()
            finally:
                self.end()
        raise_if_stopped(self.stopped)
        for thread in threads:
            thread.result()
        if self.code:
            raise SystemExit(self.code)
        if self.killed:
            raise RankfallError(
                f"{len(self.killed)} of {len(stacks)} stacks are not finished, since a worker {self.killed[0]}\n"
                "the others are in the store; run again to go on from the last checkpoints"
            )

    def end(self) -> None:
        """Start nothing more, and let running workers write their checkpoints."""
        self.ending = True
        for worker in list(self.running):
            worker.terminate()

    def feed(self, environment: Mapping[str, str]) -> None:
        """Give stacks to one worker, and to a new one if it was killed. After an error of its own, such as a full disk, none is started."""
        worker = None
        with suppress(IndexError):  # no stack is waiting
            while not self.ending:
                stack = self.waiting.popleft()
                worker = worker or self.start(environment)
                assert worker.stdin and worker.stdout
                with suppress(BrokenPipeError):
                    print(json.dumps([[cell.key for cell in stack], *self.counts()]), file=worker.stdin, flush=True)
                if any(
                    line == FINISHED for line in worker.stdout
                ):  # a component may print something when it is imported
                    self.finished(len(stack))
                    continue
                code, worker = self.close(worker), None
                if code > 0:
                    self.code, self.ending = code, True
                else:
                    self.killed.append(f"was killed ({signal.Signals(-code).name})" if code else "ended by itself")
        if worker:
            self.close(worker)

    def start(self, environment: Mapping[str, str]) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "rankfall.cli", *self.settings.command]
        worker = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, ADDRESS: "", **environment},
        )
        self.running.add(worker)
        return worker

    def close(self, worker: "subprocess.Popen[str]") -> int:
        assert worker.stdin
        with suppress(BrokenPipeError):
            worker.stdin.close()
        code = worker.wait()
        self.running.discard(worker)
        return code


def read_stacks(cells: "Sequence[Cell]") -> "Iterator[tuple[list[Cell], int, int]]":
    """Yield, in a worker, the stacks that its job sends, with the job's numbers of finished and of all cells. The job is told that a stack
    is finished when the next one is asked for. What components print goes to the log."""
    by_key = {cell.key: cell for cell in cells}
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)
        for line in iter(sys.stdin.readline, ""):
            keys, done, total = json.loads(line)
            yield [by_key[key] for key in keys], done, total
            print(FINISHED, end="", file=answers, flush=True)


@contextmanager
def assign_gpus(number: int, device: torch.device) -> Iterator[list[dict[str, str]]]:
    """Yield the environment of each worker, in which it sees one GPU. A configured number, as in `cuda:1`, is that of all workers. While
    several workers share a GPU, MPS serves it, if it is installed and the site does not run it already."""
    gpus: list[str] = visible_gpus() if device.index is None else []
    with ExitStack() as servers:
        seen = [{"CUDA_VISIBLE_DEVICES": gpu} for gpu in gpus] or [{}]
        if (
            number > len(gpus) > 0
            and device.type == "cuda"
            and shutil.which(MPS)
            and not os.environ.get("CUDA_MPS_PIPE_DIRECTORY")
        ):
            seen = [servers.enter_context(serve_gpu(gpu)) for gpu in gpus]
        yield [seen[k % len(seen)] for k in range(number)]


@contextmanager
def serve_gpu(gpu: str) -> Iterator[dict[str, str]]:
    """Run a server of one GPU, and yield the environment of its clients, which see it as number 0."""
    with tempfile.TemporaryDirectory(prefix="mps", ignore_cleanup_errors=True) as folder:
        where = {"CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}
        environment = {**os.environ, **where, "CUDA_VISIBLE_DEVICES": gpu}
        if subprocess.run([MPS, "-d"], env=environment, stdin=subprocess.DEVNULL, check=False).returncode:
            yield {"CUDA_VISIBLE_DEVICES": gpu}
            return
        try:
            yield {**where, "CUDA_VISIBLE_DEVICES": "0"}
        finally:
            subprocess.run([MPS], input="quit\n", text=True, env=environment, check=False)
