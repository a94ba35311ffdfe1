"""Check that a GPU computes what a processor computes, in stacks of any size, and after a job was killed."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from benchmarks.gpu.rows import Rows
from benchmarks.networks import CPU, Setting, gpu_settings
from rankfall.train.device import prepare
from rankfall.train.loop import Course, TrainingHistory, fit, restore, state_of
from rankfall.train.philox import kernel, keys_of, random_raw, rounds

BOUNDS = {"float64": 1e-8, "float32": 2e-3}  # relative, for the loss of each epoch; rounding grows from step to step
SEEDS, SAMPLES, BATCH = [3, 1, 4, 15], 44, 10  # of the job that is killed: five steps an epoch


def check_bits(rows: Rows, device: torch.device, tiny: bool) -> None:
    """Compare random words of the device with NumPy's."""
    rng = np.random.default_rng(0)
    keys, counter = rng.integers(2**64, size=(64, 2), dtype=np.uint64), (0, 0, 2**64 - 5, 70_000)
    words = random_raw(keys_of([(int(a), int(b)) for a, b in keys], device), counter, 1001).cpu().numpy()
    expected = [np.random.Philox(key=key, counter=np.array(counter, np.uint64)).random_raw(1001) for key in keys]
    mismatches = int((words.view(np.uint64) != np.stack(expected)).sum())
    rows.check("words that are not NumPy's", mismatches, 0, unit="of 64064")
    compiled = device.type == "cuda" and kernel(device) is not rounds
    rows.add("random words by one kernel", float(compiled), "", "ok" if compiled else "skipped")


def check_agreement(rows: Rows, device: torch.device, tiny: bool) -> None:
    """Train the same cells on the processor and, with each engine, on the device."""
    seeds, samples = ([0, 1], 16) if tiny else (list(range(8)), 128)
    for net in list(gpu_settings().values())[: 2 if tiny else 3]:
        for dtype, bound in BOUNDS.items():
            expected = train_losses(net, seeds, CPU, samples, dtype)
            for engine in net.engines(device):
                difference = relative(train_losses(net, seeds, device, samples, dtype, engine), expected)
                rows.check(f"loss, {dtype}", difference, bound, shape=net.name, members=len(seeds), engine=engine)


def check_stacks(rows: Rows, device: torch.device, tiny: bool) -> None:
    """Train a cell alone and in stacks of several sizes."""
    counts, samples = ((1, 3), 16) if tiny else ((1, 7, 32, 256), 64)
    net = gpu_settings()["sorting"]
    for dtype, bound in BOUNDS.items():
        for engine in net.engines(device):
            losses = [train_losses(net, list(range(count)), device, samples, dtype, engine)[0] for count in counts]
            limit = 0.0 if engine == "machine_gpu" else bound  # the machine promises the same bits
            for count, loss in zip(counts[1:], losses[1:]):
                labels = {"shape": net.name, "members": count, "engine": engine}
                rows.check(f"a cell of a stack, {dtype}", relative(loss, losses[0]), limit, **labels)


def check_resumed(rows: Rows, device: torch.device, tiny: bool) -> None:
    """Kill a job by SIGKILL in the middle of an epoch, resume it, and compare it with one that runs undisturbed."""
    with tempfile.TemporaryDirectory() as folder:
        for engine in gpu_settings()["sorting"].engines(device):
            undisturbed, killed = (Path(folder) / f"{name}-{engine}" for name in ("undisturbed", "killed"))
            undisturbed_job, killed_job = (start_job(path, device, engine, tiny) for path in (undisturbed, killed))
            step = kill_at_checkpoint(killed_job, killed / "state.pt")
            start_job(killed, device, engine, tiny).wait(60)
            undisturbed_job.wait(60)
            weights = [torch.load(path / "final.pt")["members.weights"] for path in (undisturbed, killed)]
            mismatches, unit = int((weights[0] != weights[1]).sum()), f"of {weights[0].numel()}"
            rows.check(f"other weights after a kill at step {step}", mismatches, 0, unit=unit, engine=engine)


def start_job(folder: Path, device: torch.device, engine: str, tiny: bool) -> subprocess.Popen[bytes]:
    """Start a training that writes checkpoints to a folder, or resumes from the one that is there."""
    folder.mkdir(exist_ok=True)
    arguments = [str(folder), str(device), engine, "10" if tiny else "40"]
    return subprocess.Popen([sys.executable, "-m", "benchmarks.gpu.checks", *arguments], env=dict(os.environ))


def kill_at_checkpoint(job: subprocess.Popen[bytes], state: Path) -> int:
    """Kill the job once it has written a checkpoint, and return the checkpoint's step."""
    while job.poll() is None and not state.exists():
        time.sleep(0.005)
    job.send_signal(signal.SIGKILL)
    job.wait()
    return int(torch.load(state)["members.step_count"])


def train_losses(
    net: Setting, seeds: list[int], device: torch.device, samples: int, dtype: str, engine: str = "plain"
) -> torch.Tensor:
    """Return the training loss of each epoch (K, epochs)."""
    members = net.members(seeds, device, dtype=dtype, epochs=3)
    members.engine = net.engine(engine, members)
    history = fit(members, net.data(seeds, device, samples, dtype), net.objective(), Course(3, 8))
    return (history.tensors["train.loss"] / history.tensors["train.asked"]).cpu()


def relative(values: torch.Tensor, expected: torch.Tensor) -> float:
    """Return the largest relative difference."""
    return float(((values - expected).abs() / expected.abs()).max())


def run_job(folder: Path, device: torch.device, engine: str, epochs: int) -> None:
    """Train with checkpoints in the middle of epochs, or resume from the last one."""
    net = gpu_settings()["sorting"]
    members, history = net.members(SEEDS, device, epochs=epochs), TrainingHistory(len(SEEDS), epochs, device)
    members.engine = net.engine(engine, members)
    if (folder / "state.pt").exists():
        restore(members, history, torch.load(folder / "state.pt", map_location=device))

    def save(name: str) -> None:
        torch.save(state_of(members, history), folder / f"{name}.part")
        (folder / f"{name}.part").replace(folder / f"{name}.pt")

    def after_step() -> None:
        if members.step_count % 5 == 3:
            save("state")

    fit(members, net.data(SEEDS, device, SAMPLES), net.objective(), Course(epochs, BATCH), history, after_step)
    save("final")


if __name__ == "__main__":
    run_job(Path(sys.argv[1]), prepare(sys.argv[2], 1), sys.argv[3], int(sys.argv[4]))
