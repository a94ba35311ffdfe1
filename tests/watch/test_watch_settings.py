"""Where a training is not plain: two processes, code that is really compiled. Slow where compilers or processes are started."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest
from test_watch import compiled_training
from watched import same

from rankfall.watch import read_table
from rankfall.watch.columns import CURVES

HERE = Path(__file__).parent

MANY = """
import sys
sys.path.insert(0, {here!r})
import torch, rankfall
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, PrepareModuleInput, parallelize_module
from torch.nn.parallel import DistributedDataParallel
from watched import gpt, words
number, size, how = int(sys.argv[1]), {size}, {how!r}
dist.init_process_group("gloo", init_method="tcp://127.0.0.1:{port}", rank=number, world_size=size)
model = gpt(depth=2)
if how == "ddp":
    trained = DistributedDataParallel(model)
else:
    trained = model
if how == "fsdp":
    for block in model.transformer["h"]:
        fully_shard(block)
    fully_shard(model)
if how == "tensor":
    for block in model.transformer["h"]:
        parallelize_module(block.mlp, init_device_mesh("cpu", (size,)), {{"0": ColwiseParallel(), "2": RowwiseParallel()}})
model.eval()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
made = []
watcher = rankfall.watch(trained, every=2, to=[{path!r}, made.append], detail="all", together=how == "ddp" or None) if {watched} else None
for step in range(3):
    optimizer.zero_grad()
    part = slice(None) if how == "tensor" else slice(number, None, size)
    trained(words(step)[part], words(99)[part])[1].backward()
    optimizer.step()
weights = [getattr(weight, "full_tensor", lambda weight=weight: weight)() for weight in model.parameters()]
if watcher:
    watcher.close()
print(len(made), sum(float(weight.detach().double().sum()) for weight in weights))
dist.destroy_process_group()
"""


def processes(size, how, path, watched=True):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code = MANY.format(here=str(HERE), port=port, path=str(path), size=size, how=how, watched=watched)
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(n)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for n in range(size)
    ]
    words = [process.communicate(timeout=300) for process in started]
    assert {process.returncode for process in started} == {0}, words
    return [out.split() for out, _ in words]


@pytest.mark.slow
@pytest.mark.parametrize(("how", "size"), [("ddp", 4), ("fsdp", 2), ("tensor", 2)])
def test_processes_measure_the_batch_together(how, size, tmp_path):
    """The rows are those of one process with the whole batch, also of gradients that are spread; the first process writes."""
    processes(1, "none", tmp_path / "one.parquet")
    result = processes(size, how, tmp_path / "run.parquet")
    assert [one[0] for one in result] == ["2", *["0"] * (size - 1)]
    plain = processes(size, how, tmp_path / "none.parquet", watched=False)
    assert [one[1] for one in result] == [one[1] for one in plain]
    rows, expected = (read_table(tmp_path / name).to_pylist() for name in ("run.parquet", "one.parquet"))
    for row, other in zip(rows, expected, strict=True):
        assert (row["step"], row["layer"], row["mask"]) == (other["step"], other["layer"], other["mask"])
        assert row["samples"] == other["samples"] * (size if how == "tensor" else 1)
        for name in CURVES:
            if name not in ("effective_rank", "dead_units"):  # of the first process; of each process's samples
                known = None if other[name] is None else pytest.approx(other[name], rel=1e-4)
                assert row[name] == known, name
        for mine, theirs in zip(row["parameters"], other["parameters"], strict=True):
            assert mine["name"] == theirs["name"]
            for name in ("gradient_norm", "update_ratio"):
                assert mine[name] == (theirs[name] and pytest.approx(theirs[name], rel=1e-3))
        for mine, theirs in zip(row["heads"] or [], other["heads"] or [], strict=True):
            assert mine == pytest.approx(theirs, rel=1e-4)


@pytest.mark.slow
def test_code_of_inductor_is_the_same_training(tmp_path, monkeypatch):
    from torch._dynamo.utils import counters

    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    counters.clear()
    plain, _ = compiled_training("wrapped", False, "inductor")
    assert counters["stats"]["unique_graphs"] == 1
    counters.clear()
    seen, rows = compiled_training("wrapped", True, "inductor")
    # Compiled again where hooks come or go, without a break (fullgraph), and never once a step.
    assert counters["stats"]["unique_graphs"] <= 3 and same(plain, seen)
    assert {step for step, _ in rows} == {1, 2, 4} and all(row["residual"] > 0 for row in rows.values())
