"""Guards the store's cleaning: everything that a plan needs stays, everything else is listed, and nothing goes
without being told to.
"""

import json
import os
import re
import socket
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
import torch
from helpers import config, dataset_of

from rankfall import cli
from rankfall.commands.gc import add_needed_by_running, find_needed
from rankfall.run.objects import Objects
from rankfall.run.plan import make_plan
from rankfall.run.plan.cell import digest
from rankfall.run.snakemake.run_plan import RunPlan
from rankfall.run.store import Store
from rankfall.run.store.announced import read_announcements
from rankfall.run.store.inventory import Live, find_removable

pytestmark = pytest.mark.long


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


def save(store, keys, group="g", status="done"):
    records = [{"status": status}] * len(keys)
    return store.save_stack(group, list(keys), {"w": torch.ones(len(keys), 2)}, records)


def save_dataset(store, key):
    dataset = dataset_of(*[torch.zeros(1)] * 4, size_in=1, size_out=1, chance=0.0)
    store.dataset(key, lambda: dataset)
    return store.root / "data" / f"{key}.safetensors"


def set_age(days, *paths):
    for path in paths:
        os.utime(path, (time.time() - days * 86_400,) * 2)


def cell(key):
    return SimpleNamespace(key=key, data_key=f"d{key}")


def clean(results, *words):
    assert cli.main(["gc", "--config", "a.yaml", "--results", str(results), *words]) == 0


class Plan:
    """As much of a plan as cleaning looks at."""

    def __init__(self, keys):
        self.cells = [cell(key) for key in keys]
        self.shards = {("sorting", "0"): self.cells}
        self.measures = {
            label: SimpleNamespace(needs=needs, component=SimpleNamespace(name=name))
            for label, needs, name in (("short ones", "cells", "paths"), ("law", "nothing", "law"))
        }

    def measured_cells(self, measure, task, shard):
        return self.shards[task, shard]

    def measure_key(self, measure, cell=None):
        return f"{measure}-{cell.key if cell else None}"


@pytest.fixture
def plans(monkeypatch):
    """Name each config after the cells in it."""
    monkeypatch.setattr("rankfall.run.plan.make_plan", lambda path: Plan(path.stem), raising=False)
    monkeypatch.setattr("rankfall.run.snakemake.jobs.PlanJobs", lambda plan: SimpleNamespace(all_jobs=[]))


def test_data_rows_and_measures_that_no_plan_names_are_listed(store):
    kept = [save_dataset(store, "d1"), store.save_rows("paths", {"k1": [], "k2": [{"x": 1}]})]
    kept.append(store.save_rows("mylab.curves:Drift", {"k1": []}))
    unneeded = [save_dataset(store, "d2"), store.save_rows("paths", {"k3": [{"x": 1}]})]
    unneeded.append(store.save_rows("no longer in the config", {"k1": []}))
    measures = {"paths": {"k2", "k9"}, "mylab.curves:Drift": {"k1"}}
    assert {item.path for item in find_removable(store, Live(data={"d1"}, measures=measures))} == {*unneeded}
    assert all(path.exists() for path in kept)


def test_a_checkpoint_stays_while_one_of_its_cells_waits(store):
    save(store, "a")
    save(store, "f", status="failed")
    for name, cells in {"waiting": ["a", "b"], "finished": ["a"], "dropped": ["z"], "retried": ["f"]}.items():
        store.save_checkpoint(name, {"w": torch.zeros(1)}, {"cells": cells})
    store.save_checkpoint("young", {}, {"step": 1})
    set_age(40, store.save_checkpoint("old", {}, {"step": 1}))
    items = find_removable(store, Live(cells={"a", "b", "f"}))
    assert {(item.kind, item.path.stem) for item in items} == {
        ("checkpoint", x) for x in ("dropped", "finished", "old")
    }


def test_temporary_files_go_when_their_writer_is_dead_or_they_are_old(store):
    save(store, "a")
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    host = socket.gethostname()
    names = [
        f".x.safetensors.{host}.{dead.pid}.0a.tmp",
        f".x.safetensors.{host}.{os.getpid()}.0b.tmp",
        f".x.safetensors.node7.cluster.{dead.pid}.0c.tmp",
        f".x.safetensors.node7.cluster.{dead.pid}.0d.tmp",
    ]
    files = [store.root / "stacks" / "g" / name for name in names]
    for file in files:
        file.write_bytes(b"half")
    set_age(2, files[3])
    assert {item.path for item in find_removable(store, Live(cells={"a"}))} == {files[0], files[3]}
    assert store.find_cells(["a"]).keys() == {"a"}  # and none of them was ever taken for a stack


def test_the_command_shows_first_and_deletes_only_when_told(plans, store, tmp_path, capsys):
    live, dead, other = save(store, "ab"), save(store, "c"), save(store, "x")
    rows = {"paths": {"short ones-b": []}, "law": {"law-None": []}}
    store.save_rows("paths", rows["paths"] | {"paths-z": []})
    store.save_rows("law", rows["law"])
    command = ["gc", "--config", "a.yaml", "bx.yaml", "--results", str(tmp_path)]
    assert cli.main([*command, "--keep-days", "0"]) == 0
    output = capsys.readouterr().out
    assert "would remove 1 file" in output and "--delete" in output
    assert dead.exists()
    for age in (0, 6.9):
        set_age(age, dead)
        assert cli.main([*command, "--delete"]) == 0
        assert dead.exists()  # it is young
    assert "1 unneeded, written in the last 7 days: kept" in capsys.readouterr().out
    set_age(7.1, dead)
    assert cli.main([*command, "--delete", "--files"]) == 0
    assert f"{dead}: no cell of it is in the plan" in capsys.readouterr().out
    assert [path.exists() for path in (live, dead, other)] == [True, False, True]
    assert {name: store.find_rows(name, [*expected]) for name, expected in rows.items()} == rows
    assert cli.main(command) == 0
    assert "nothing to remove" in capsys.readouterr().out


def test_what_a_live_run_announced_is_kept_though_it_is_old(plans, store, tmp_path, capsys):
    other = Store(tmp_path / "store")
    dead, needed = save(store, "y"), [save(store, "x"), save_dataset(store, "dx")]
    needed.append(store.save_rows("law", {digest("key of law", "x"): [{"a": 1}], digest("key of law", None): []}))
    announcement = other.announce([cell("x")], {"law": ["key of law"]})
    set_age(9999, dead, *needed)
    clean(tmp_path, "--delete")
    assert "running processes that need this store: 1" in capsys.readouterr().out
    assert not dead.exists() and all(path.exists() for path in (*needed, announcement))
    del other  # the run has ended
    assert not announcement.exists()
    clean(tmp_path, "--delete")
    assert not any(path.exists() for path in needed)


def test_an_announcement_of_a_real_plan_covers_its_rows(store, tmp_path):
    measures = {
        "paths": {"counts": [2], "cells": {"seed": 0}},
        "more": {"measure": "paths", "counts": [2], "cells": {"seed": 1}},
        "orders": {},
    }
    raw = config(measures=measures, grid={"seed": "0..1"})
    plan = make_plan(raw)
    run = RunPlan.make(plan, raw, tmp_path)
    run.write()
    announced, needed = Live(), find_needed([plan])
    assert add_needed_by_running(store, announced) == 1
    assert (announced.cells, announced.data) == (needed.cells, needed.data)
    assert all(needed.measures[name] <= announced.measures[name] for name in ("paths", "orders"))


ANNOUNCE = """
import sys, time
from types import SimpleNamespace
from rankfall.run.store import Store
store = Store(sys.argv[1])
assert store.announce([SimpleNamespace(key="x", data_key="d")])
print("ready", flush=True)
time.sleep(60)
"""


def test_announcements_of_the_dead_count_no_more(store, tmp_path, plans):
    command = [sys.executable, "-c", ANNOUNCE, str(store.root)]
    killed = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert killed.stdout.readline() == "ready\n"
    (path,) = (store.root / "announced").iterdir()
    assert [process.cells for process in read_announcements(store)[0]] == [["x"]]
    killed.kill()
    killed.wait()
    running = path.with_name("running.json")
    running.write_bytes(path.read_bytes())
    assert len(read_announcements(store)[0]) == 2
    set_age(2 / 24, path)  # not renewed for two hours
    live, dead = read_announcements(store)
    assert [process.path for process in live] == [running] and dead == [path]
    clean(tmp_path, "--delete")
    assert list((store.root / "announced").iterdir()) == [running]


def write_configs(folder, **changes):
    """Write two configurations with results in a folder. Return their files and contents."""
    raws = [config() | {"results": str(folder / "results")} | more for more in ({}, changes)]
    paths = [folder / f"{number}.json" for number in range(2)]
    for path, raw in zip(paths, raws):
        path.write_text(json.dumps(raw))
    return paths, raws


def test_plans_of_former_runs_go_when_nothing_runs(tmp_path, capsys):
    """With all that is in them. One that a run has used again this week stays, and all of them while anything works here."""
    (file, _), raws = write_configs(tmp_path, name="another")
    old, new = (RunPlan.make(make_plan(raw), raw) for raw in raws)
    for run in (old, new):
        run.write()
    former = tmp_path / "results" / "plan" / "0123.json"
    former.write_text("{}")  # as former versions wrote it
    set_age(9999, old.folder, former)
    gone, stays = old.folder, new.folder
    assert cli.main(["gc", "--config", str(file), "--delete"]) == 0
    assert gone.is_dir()
    del run, old, new  # they have announced to the store what they need
    assert cli.main(["gc", "--config", str(file)]) == 0
    assert gone.is_dir()
    assert cli.main(["gc", "--config", str(file), "--delete"]) == 0
    assert list((tmp_path / "results" / "plan").iterdir()) == [stays]
    assert (stays / "jobs.json").is_file()
    assert "plan " in capsys.readouterr().out


def test_work_files_that_no_named_configuration_asks_for_go_with_their_logs(tmp_path, capsys):
    """Keep what is written this week, everything while a run works here, and what another named configuration asks for."""
    paths, raws = write_configs(tmp_path, trainings={"short": {"lr": 0.5, "epochs": 1}})
    files = []
    for raw in (*raws, raws[0] | {"trainings": {"short": {"lr": 0.25, "epochs": 1}}}):
        jobs = RunPlan.make(make_plan(raw), raw).jobs.values()
        files.append({tmp_path / "results" / name for job in jobs for name in (*job.files, job.log)})
        for path in files[-1]:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
            set_age(9999, path)
    fresh, log = min(files[2] - files[0] - files[1]), tmp_path / "results" / "logs" / "run.log"
    for path in (fresh, log):
        path.touch()
    assert cli.main(["gc", "--config", *map(str, paths), "--delete"]) == 0
    left = {path for part in ("work", "logs") for path in (tmp_path / "results" / part).rglob("*") if path.is_file()}
    assert left == files[0] | files[1] | {fresh, log}
    assert re.search(r"^work file +\d+ files", capsys.readouterr().out, re.MULTILINE)


def test_a_wrong_clock_of_this_machine_removes_nothing(plans, store, tmp_path, monkeypatch):
    """Ages are those by the clock of the file system. By this machine's, all files are a month old, and other machines' jobs have ended."""
    young, announced = save(store, "c"), save(store, "x")
    path = Store(tmp_path / "store").announce([cell("x")])
    elsewhere = path.with_name("elsewhere.json")
    about = {"cells": ["x"], "data": [], "measures": {}}
    elsewhere.write_text(json.dumps(about))
    set_age(8, announced)
    present = time.time()
    monkeypatch.setattr(time, "time", lambda: present + 30 * 86_400)
    clean(tmp_path, "--delete")
    assert young.exists() and announced.exists() and elsewhere.exists()


def test_a_bucket_is_cleaned_by_the_same_rule(plans, tmp_path, monkeypatch):
    clean_bucket(f"file://{tmp_path}/bucket", None, tmp_path, monkeypatch)


def clean_bucket(url, endpoint, folder, monkeypatch):
    """Clean from another machine than the one that wrote the bucket. Its folder is empty, and running jobs keep what they announced."""
    for name in ("one", "other"):
        Objects(folder / name, url, endpoint).mark()
    writer, running = Store(folder / "one" / "store"), Store(folder / "one" / "store")
    live, dead, _ = save(writer, "ab"), save(writer, "c"), save(writer, "x")
    kept_rows, unneeded_rows = (writer.save_rows("paths", {key: []}).name for key in ("short ones-a", "paths-z"))
    for key in ("da", "dz"):
        save_dataset(writer, key)
    for name in ("work/train/0123.parquet", "logs/train/0123.log", "plan/0123/jobs.json"):
        (folder / "one" / name).parent.mkdir(parents=True)
        (folder / "one" / name).touch()
        writer.objects.put(folder / "one" / name)
    announcement = f"store/announced/{running.announce([cell('x')]).name}"

    def names():
        return {name for part in ("store", "work", "logs", "plan") for name in writer.objects.list_all(part)}

    before = names()
    clean(folder / "other", "--delete")
    assert names() == before, "it is young"
    clean(folder / "other", "--delete", "--keep-days", "0")
    stacks = {f"store/{kind}/g/{dead.name}" for kind in ("stacks", "headers")}
    assert before - names() == {*stacks, f"store/measures/paths/{unneeded_rows}", "store/data/dz.safetensors"}
    assert announcement in names()
    del running
    assert announcement not in names()
    clean(folder / "other", "--delete", "--keep-days", "0")
    kept = {f"store/{kind}/g/{live.name}" for kind in ("stacks", "headers")}
    assert names() == kept | {f"store/measures/paths/{kept_rows}", "store/data/da.safetensors"}
    assert writer.load_cells(["a", "b"])
