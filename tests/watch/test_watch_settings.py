"""Where a training is not plain: two processes, code that is really compiled. Slow where compilers or processes are started."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest
from test_watch import compiled_training
from watched import same

from rankfall.watch import read_table

HERE = Path(__file__).parent

TWO = """
import sys
sys.path.insert(0, {here!r})
import torch, rankfall
from torch.nn.parallel import DistributedDataParallel
from watched import gpt, words
number = int(sys.argv[1])
torch.distributed.init_process_group("gloo", init_method="tcp://127.0.0.1:{port}", rank=number, world_size=2)
model = DistributedDataParallel(gpt())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
made = []
watcher = rankfall.watch(model, every=2, to=[{path!r}, made.append]) if {watched} else None
torch.manual_seed(number)
for step in range(4):
    optimizer.zero_grad()
    with model.no_sync():
        model(words(100 * step + number), words(99))[1].backward()
    model(words(100 * step + 50 + number, batch=4 + number), words(99, batch=4 + number))[1].backward()
    optimizer.step()
print(len(made), watcher and watcher.steps, sum(float(weight.double().sum()) for weight in model.parameters()))
if watcher:
    watcher.close()
torch.distributed.destroy_process_group()
"""


def two(path, watched):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code = TWO.format(here=str(HERE), port=port, path=str(path), watched=watched)
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(n)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for n in (0, 1)
    ]
    said = [process.communicate(timeout=120) for process in started]
    assert [process.returncode for process in started] == [0, 0], said
    return [out.split() for out, _ in said]


@pytest.mark.slow
def test_of_two_processes_one_writes(tmp_path):
    first, second = two(tmp_path / "run.parquet", True)
    assert first[:2] == ["3", "4"] and second[:2] == ["0", "4"]
    plain = two(tmp_path / "none.parquet", False)
    assert [first[2], second[2]] == [plain[0][2], plain[1][2]]
    table = read_table(tmp_path / "run.parquet")
    assert table["step"].to_pylist() == [step for step in (1, 2, 4) for _ in range(4)]
    assert set(table["block"].to_pylist()) == {"", *(f"transformer.h.{n}" for n in range(3))}
    assert set(table["samples"].to_pylist()) == {4}
    assert not (tmp_path / "none.parquet").exists()


@pytest.mark.slow
def test_code_of_inductor_is_one_graph_and_the_same_training(tmp_path, monkeypatch):
    from torch._dynamo.utils import counters

    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    counters.clear()
    plain, _ = compiled_training("wrapped", False, "inductor")
    assert counters["stats"]["unique_graphs"] == 1
    counters.clear()
    seen, rows = compiled_training("wrapped", True, "inductor")
    assert counters["stats"]["unique_graphs"] == 1 and same(plain, seen)
    assert {step for step, _ in rows} == {1, 2, 4} and all(row["residual"] > 0 for row in rows.values())
