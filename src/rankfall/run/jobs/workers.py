"""Workers: several processes of a job, which compute a stack at a time, each on its own GPU if there are several.

The job divides its cells into stacks in the same way as without workers, so the results have the same bits. A worker runs the command of
the job with `--worker`. It reads the cells of a stack from its input, and answers when their results are in the store. If a worker is
killed, its stack waits for the next attempt of the job, and a new worker computes the other stacks.
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

import torch

from rankfall.errors import RankfallError
from rankfall.run.forks.client import ADDRESS
from rankfall.run.jobs.engine import Settings, Stopped, raise_if_stopped, visible_gpus
from rankfall.run.plan.cell import Cell

WAIT = 0.2  # seconds between two checks for signals
FINISHED = "finished\n"  # answer of a worker
MPS = "nvidia-cuda-mps-control"  # NVIDIA's server by which kernels of several processes run on a GPU at the same time


class Workers:
    """The workers of a job.

    `finished` is called after each stack with its number of cells. `counts` returns the numbers of finished and of all cells of the job,
    which the worker's lines in the log show."""

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
        self.code = 0  # exit code of a worker that reported an error
        self.ending = False  # whether no further stack is started

    def compute(self, stacks: Sequence[Sequence[Cell]]) -> None:
        """Compute all stacks.

        Pass a signal on to the workers and raise `Interrupted`. Raise an error if a worker was killed. Exit with the code of a worker that
        reported an error itself."""
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
        """Give stacks to a worker, and to a new one if it was killed. After a worker's own error, such as a full disk, start none."""
        worker = None
        with suppress(IndexError):  # no stack is waiting
            while not self.ending:
                stack = self.waiting.popleft()
                worker = worker or self.start(environment)
                assert worker.stdin and worker.stdout
                with suppress(BrokenPipeError):
                    print(json.dumps([[cell.key for cell in stack], *self.counts()]), file=worker.stdin, flush=True)
                # A component may print lines when it is imported.
                if any(line == FINISHED for line in worker.stdout):
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
        """Start a worker, which no server forks, since its environment differs."""
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
        """Close a worker's input, wait for its end, and return its exit code."""
        assert worker.stdin
        with suppress(BrokenPipeError):
            worker.stdin.close()
        code = worker.wait()
        self.running.discard(worker)
        return code


def read_stacks(cells: Sequence[Cell]) -> Iterator[tuple[list[Cell], int, int]]:
    """Yield, in a worker, the stacks that its job sends, with the job's numbers of finished and of all cells.

    A request for the next stack tells the job that the last one is finished. Standard output goes to the log, since components may
    print."""
    by_key = {cell.key: cell for cell in cells}
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)
        for line in iter(sys.stdin.readline, ""):
            keys, done, total = json.loads(line)
            yield [by_key[key] for key in keys], done, total
            print(FINISHED, end="", file=answers, flush=True)


@contextmanager
def assign_gpus(number: int, device: torch.device) -> Iterator[list[dict[str, str]]]:
    """Yield the environment of each worker, in which it sees one GPU.

    With a configured GPU, as in `cuda:1`, all workers use that GPU. MPS serves a GPU that several workers share, if MPS is installed and
    the site does not run it already."""
    gpus: list[str] = visible_gpus() if device.index is None else []
    with ExitStack() as servers:
        environments = [{"CUDA_VISIBLE_DEVICES": gpu} for gpu in gpus] or [{}]
        if (
            number > len(gpus) > 0
            and device.type == "cuda"
            and shutil.which(MPS)
            and not os.environ.get("CUDA_MPS_PIPE_DIRECTORY")
        ):
            environments = [servers.enter_context(serve_gpu(gpu)) for gpu in gpus]
        yield [environments[k % len(environments)] for k in range(number)]


@contextmanager
def serve_gpu(gpu: str) -> Iterator[dict[str, str]]:
    """Run a server of one GPU, and yield the environment of its clients, which see it as number 0."""
    with tempfile.TemporaryDirectory(prefix="mps", ignore_cleanup_errors=True) as folder:
        folders = {"CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}
        environment = {**os.environ, **folders, "CUDA_VISIBLE_DEVICES": gpu}
        if subprocess.run([MPS, "-d"], env=environment, stdin=subprocess.DEVNULL, check=False).returncode:
            yield {"CUDA_VISIBLE_DEVICES": gpu}
            return
        try:
            yield {**folders, "CUDA_VISIBLE_DEVICES": "0"}
        finally:
            subprocess.run([MPS], input="quit\n", text=True, env=environment, check=False)
