"""Is what a GPU computes what a processor computes, in stacks of any size, and after a job was killed?"""

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
from benchmarks.gpu.shapes import Setting, settings
from rankfall.train.loop import Course, TrainingHistory, fit
from rankfall.train.members import Members
from rankfall.train.philox import kernel, keys_of, random_raw, rounds

CPU = torch.device("cpu")
BOUNDS = {"float64": 1e-8, "float32": 2e-3}  # relative, of the loss of each epoch; rounding grows from step to step


def check_bits(rows: Rows, device: torch.device) -> None:
    """Random words of the device are NumPy's."""
    rng = np.random.default_rng(0)
    keys, counter = rng.integers(2**64, size=(64, 2), dtype=np.uint64), (0, 0, 2**64 - 5, 70_000)
    found = (
        random_raw(keys_of([(int(a), int(b)) for a, b in keys], device), counter, 1001).cpu().numpy().view(np.uint64)
    )
    expected = [np.random.Philox(key=key, counter=np.array(counter, np.uint64)).random_raw(1001) for key in keys]
    wrong = int((found != np.stack(expected)).sum())
    rows.check("words that are not NumPy's", wrong, 0, unit="of 64064")
    compiled = device.type == "cuda" and kernel(device) is not rounds
    rows.add("random words by one kernel", float(compiled), "", "ok" if compiled else "skipped")


def check_agreement(rows: Rows, device: torch.device, tiny: bool) -> None:
    """The same cells on the processor and on the device, plain and captured."""
    seeds, samples = ([0, 1], 16) if tiny else (list(range(8)), 128)
    for net in list(settings().values())[: 2 if tiny else 3]:
        for dtype, bound in BOUNDS.items():
            expected = losses(net, seeds, CPU, samples, dtype)
            for engine in net.engines(device):
                found = losses(net, seeds, device, samples, dtype, engine)
                rows.check(
                    f"loss, {dtype}", apart(found, expected), bound, shape=net.name, members=len(seeds), engine=engine
                )


def check_stacks(rows: Rows, device: torch.device, tiny: bool) -> None:
    """A cell alone and in stacks of several sizes."""
    counts = (1, 3) if tiny else (1, 7, 32, 256)
    net, samples = settings()["sorting"], 16 if tiny else 64
    for dtype, bound in BOUNDS.items():
        for engine in net.engines(device):
            found = {count: losses(net, list(range(count)), device, samples, dtype, engine)[0] for count in counts}
            own = 0.0 if engine == "machine_gpu" else bound  # whose promise is every bit
            for count in counts[1:]:
                difference = apart(found[count], found[1])
                about_it = {"shape": net.name, "members": count, "engine": engine}
                rows.check(f"a cell of a stack, {dtype}", difference, own, **about_it)


def check_resumed(rows: Rows, device: torch.device, tiny: bool) -> None:
    """A job that is killed in the middle of an epoch, by SIGKILL, and one that is left alone."""
    with tempfile.TemporaryDirectory() as folder:
        for engine in settings()["sorting"].engines(device):
            alone, killed = (Path(folder) / f"{name}-{engine}" for name in ("alone", "killed"))
            whole, job = (begun(one, device, engine, tiny) for one in (alone, killed))
            step = end_at_a_checkpoint(job, killed / "state.pt")
            begun(killed, device, engine, tiny).wait(60)
            whole.wait(60)
            weights = [torch.load(one / "final.pt")["members.weights"] for one in (alone, killed)]
            wrong = int((weights[0] != weights[1]).sum())
            rows.check(
                f"other weights after a kill at step {step}", wrong, 0, unit=f"of {weights[0].numel()}", engine=engine
            )


def begun(folder: Path, device: torch.device, engine: str, tiny: bool) -> subprocess.Popen[bytes]:
    folder.mkdir(exist_ok=True)
    given = [str(folder), str(device), engine, "10" if tiny else "40"]
    return subprocess.Popen([sys.executable, "-m", "benchmarks.gpu.job", *given], env=dict(os.environ))


def end_at_a_checkpoint(job: subprocess.Popen[bytes], state: Path) -> int:
    """Kills the job once it has kept a step in the middle of an epoch; which one."""
    while job.poll() is None and not state.exists():
        time.sleep(0.005)
    job.send_signal(signal.SIGKILL)
    job.wait()
    return int(torch.load(state)["members.step_count"])


def losses(
    net: Setting, seeds: list[int], device: torch.device, samples: int, dtype: str, engine: str = "plain"
) -> torch.Tensor:
    """Of each epoch, (K, epochs)."""
    members = net.members(seeds, device, dtype=dtype, epochs=3)
    members.engine = net.engine(engine, members)
    history = trained(members, net, samples, 3, dtype)
    sums, asked = history.tensors["train.loss"], history.tensors["train.asked"]
    return (sums / asked).cpu()


def trained(members: Members, net: Setting, samples: int, epochs: int, dtype: str) -> TrainingHistory:
    data = net.data(members.seeds, members.device, samples, dtype)
    return fit(members, data, net.objective(), Course(epochs, 8))


def apart(found: torch.Tensor, expected: torch.Tensor) -> float:
    """The largest relative difference."""
    return float(((found - expected).abs() / expected.abs()).max())
