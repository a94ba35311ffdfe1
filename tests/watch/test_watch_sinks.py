"""Rows arrive where they were asked to: a file that survives a kill, TensorBoard, Weights & Biases, functions, several at once."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from watched import gpt, train_watched

import rankfall
from rankfall.errors import RankfallError
from rankfall.watch import read_table
from rankfall.watch.columns import COLUMNS, CURVES

HERE = Path(__file__).parent


def run(to, steps=4, **options):
    train_watched(gpt(), steps, to=to, **options)


def test_a_file_and_a_function_have_the_same_rows(tmp_path):
    rows = []
    run([tmp_path / "run.parquet", rows.extend])
    table = read_table(tmp_path / "run.parquet")
    assert table.schema.names == [column.name for column in COLUMNS]
    assert table.to_pylist() == rows and len(rows) == 12
    assert len(pd.read_parquet(tmp_path / "run.parquet")) == 12
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.parquet"]


def test_a_second_training_is_appended_as_another_run(tmp_path):
    """Also to a file of a version without the columns of heads and parameters."""
    path = tmp_path / "run.parquet"
    run(path)
    pd.read_parquet(path).drop(columns=["heads", "parameters"]).to_parquet(path)
    run(path, start=4)
    assert read_table(path)["run"].to_pylist() == [0] * 12 + [1] * 12
    assert pd.read_parquet(path).groupby("run").step.unique().map(list).to_dict() == {0: [1, 2, 4], 1: [5, 6, 8]}


def test_a_file_of_something_else_is_left_alone(tmp_path):
    pd.DataFrame({"x": [1]}).to_parquet(tmp_path / "other.parquet")
    (tmp_path / "text.parquet").write_text("no table")
    (tmp_path / "folder.parquet").mkdir()
    for name, message in (
        ("other", "is not a table of a watched run: its columns are x"),
        ("text", "cannot be read"),
        ("folder", "a folder"),
    ):
        with pytest.raises(RankfallError, match=message):
            rankfall.watch(gpt(), to=tmp_path / f"{name}.parquet")
    assert (tmp_path / "text.parquet").read_text() == "no table"


def test_a_place_that_cannot_be_written_to_is_found_at_once(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RankfallError, match=r"cannot write .*file/run.parquet: "):
        rankfall.watch(gpt(), to=tmp_path / "file" / "run.parquet")
    watcher = rankfall.watch(gpt(), to=tmp_path / "new" / "run.parquet")
    assert read_table(tmp_path / "new" / "run.parquet").num_rows == 0
    watcher.close(quiet=True)


KILLED = """
import sys
sys.path.insert(0, {here!r})
from watched import gpt, train
import rankfall

def begin(model):
    return rankfall.watch(model, every=1, to=[{path!r}, lambda rows: print(rows[0]["step"], flush=True)])

train(gpt(), 10**6, begin)
"""


@pytest.mark.long
def test_a_killed_training_leaves_all_that_was_logged(tmp_path):
    path = tmp_path / "run.parquet"
    code = KILLED.format(here=str(HERE), path=str(path))
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) >= 7:
            break
    time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    steps = read_table(path)["step"].to_pylist()
    assert steps == [step for step in range(1, max(steps) + 1) for _ in range(4)] and max(steps) >= 7
    run(path)  # and another may be appended
    assert set(read_table(path)["run"].to_pylist()) == {0, 1}


def test_tensorboard_has_the_same_numbers(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from torch.utils.tensorboard import SummaryWriter

    rows = []
    own = SummaryWriter(str(tmp_path / "own"))
    run([f"tensorboard:{tmp_path / 'runs'}", own, rows.extend])
    own.close()
    for folder in ("runs", "own"):
        events = EventAccumulator(str(tmp_path / folder)).Reload()
        wanted = {
            f"rankfall/{name}/layer_{row['layer']:02d}" for row in rows for name in CURVES if row[name] is not None
        }
        assert set(events.Tags()["scalars"]) == wanted
        for name in ("residual", "entropy"):
            scalars = [(event.step, event.value) for event in events.Scalars(f"rankfall/{name}/layer_02")]
            assert scalars == [(row["step"], pytest.approx(row[name])) for row in rows if row["layer"] == 2]


def test_standard_output_has_a_line_a_log(capsys):
    rows = []
    run(["stdout", rows.extend])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == [f"rankfall step {step}" for step in (1, 2, 4)]
    last = rows[-1]
    assert f"loss {rows[-4]['loss']:.4g}" in lines[-1] and f"{last['residual']:.3g} (layer 3)" in lines[-1]


@pytest.mark.parametrize(("name", "function"), [("trackio", "log"), ("mlflow", "log_metrics")])
def test_curves_go_to_the_active_run_of_a_tracker(name, function, monkeypatch):
    """By the one function of it that is called, which a stand-in has."""
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(RankfallError, match=f"to='{name}' needs {name}: pip install {name}"):
        rankfall.watch(gpt(), to=name)
    logs, rows = {}, []
    log = lambda curves, step: logs.update({step: curves})  # noqa: E731
    monkeypatch.setitem(sys.modules, name, SimpleNamespace(**{function: log}))
    run([name, rows.extend], detail="all")
    assert sorted(logs) == [1, 2, 4]
    for row in rows:
        assert logs[row["step"]][f"rankfall/residual/layer_{row['layer']:02d}"] == row["residual"]
    assert {"rankfall/entropy/layer_03_head_01", f"rankfall/update_ratio/{rows[-1]['parameters'][0]['name']}"} <= set(
        logs[4]
    )


def test_wandb_needs_a_run(monkeypatch):
    wandb = pytest.importorskip("wandb")
    monkeypatch.setattr(wandb, "run", None)
    with pytest.raises(RankfallError, match=r"there is none: call wandb.init"):
        rankfall.watch(gpt(), to="wandb")


@pytest.mark.slow
def test_wandb_itself_offline(tmp_path):
    pytest.importorskip("wandb")
    code = f"""
import sys
sys.path.insert(0, {str(HERE)!r})
import wandb, rankfall
from watched import gpt, train
run = wandb.init(project="rankfall", mode="offline", dir={str(tmp_path)!r})
_, watcher = train(gpt(), 4, lambda model: rankfall.watch(model, every=2, to=["wandb", lambda rows: run.log({{"loss": 1.0}})]))
watcher.close()
print(dict(run.summary)["rankfall/step"], dict(run.summary)["rankfall/residual/layer_02"] < 1, run.step)
run.finish()
"""
    environment = {**os.environ, "WANDB_SILENT": "true", "WANDB_MODE": "offline"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["4", "True", "3"]
    (file,) = tmp_path.rglob("*.wandb")
    assert b"rankfall/residual/layer_03" in file.read_bytes()
