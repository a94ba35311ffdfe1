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
from rankfall.run.objects import Objects
from rankfall.run.plan import make_plan
from rankfall.run.plan.cell import digest
from rankfall.run.snakemake.run_plan import RunPlan
from rankfall.run.store import Store
from rankfall.run.store.announced import read_announcements
from rankfall.run.store.inventory import Live, find_removable, remove

pytestmark = pytest.mark.long


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


def save(store, keys, group="g", statuses=None):
    statuses = statuses or ["done"] * len(keys)
    return store.save_stack(group, list(keys), {"w": torch.ones(len(keys), 2)}, [{"status": s} for s in statuses])


def kinds(items):
    return sorted((item.kind, item.path.name) for item in items)


def test_a_stack_stays_as_long_as_one_live_cell_is_read_from_it(store):
    mixed, dead, live = save(store, "ab"), save(store, "cd"), save(store, "e", "h")
    items = find_removable(store, Live(cells={"a", "e"}))
    assert [item.path for item in items] == [dead]
    assert items[0].bytes == dead.stat().st_size
    remove(items, store)
    assert mixed.exists()
    assert live.exists()
    assert not dead.exists()
    assert find_removable(store, Live(cells={"a", "e"})) == []
    assert store.load_cells(["a"], "g")[0].keys == ["a"]


def test_data_rows_and_measures_that_no_plan_names_are_listed(store):
    tensors = [torch.zeros(1)] * 4
    for key in ("d1", "d2"):
        store.dataset(key, lambda: dataset_of(*tensors, size_in=1, size_out=1, chance=0.0))
    kept = store.save_rows("paths", {"k1": [], "k2": [{"x": 1}]})
    old = store.save_rows("paths", {"k3": [{"x": 1}]})
    gone = store.save_rows("no longer in the config", {"k1": []})
    store.save_rows("mylab.curves:Drift", {"k1": []})
    items = find_removable(store, Live(data={"d1"}, measures={"paths": {"k2", "k9"}, "mylab.curves:Drift": {"k1"}}))
    assert kinds(items) == sorted([("dataset", "d2.safetensors"), ("rows", old.name), ("rows", gone.name)])
    assert kept.exists()


def test_a_checkpoint_stays_while_one_of_its_cells_waits(store):
    save(store, "a")
    save(store, "f", statuses=["failed"])
    for name, cells in {"waiting": ["a", "b"], "finished": ["a"], "dropped": ["z"], "retried": ["f"]}.items():
        store.save_checkpoint(name, {"w": torch.zeros(1)}, {"cells": cells})
    store.save_checkpoint("young", {}, {"step": 1})
    old = store.save_checkpoint("old", {}, {"step": 1})
    os.utime(old, (time.time() - 40 * 86_400,) * 2)
    items = find_removable(store, Live(cells={"a", "b", "f"}))
    assert kinds(items) == [("checkpoint", f"{name}.safetensors") for name in ("dropped", "finished", "old")]


def test_temporary_files_go_when_their_writer_is_dead_or_they_are_old(store):
    save(store, "a")
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    folder, host = store.root / "stacks" / "g", socket.gethostname()
    names = {
        "dead": f".x.safetensors.{host}.{dead.pid}.0a.tmp",
        "alive": f".x.safetensors.{host}.{os.getpid()}.0b.tmp",
        "elsewhere": f".x.safetensors.node7.cluster.{dead.pid}.0c.tmp",
        "elsewhere and old": f".x.safetensors.node7.cluster.{dead.pid}.0d.tmp",
    }
    for name in names.values():
        (folder / name).write_bytes(b"half")
    os.utime(folder / names["elsewhere and old"], (time.time() - 2 * 86_400,) * 2)
    items = find_removable(store, Live(cells={"a"}))
    assert sorted(item.path.name for item in items) == sorted([names["dead"], names["elsewhere and old"]])
    assert store.find_cells(["a"]).keys() == {"a"}  # and none of them was ever taken for a stack


class Plan:
    """As much of a plan as cleaning looks at."""

    def __init__(self, keys):
        self.cells = [SimpleNamespace(key=key, data_key="d" + key) for key in keys]
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
    """Each config is named after the cells in it."""
    monkeypatch.setattr("rankfall.run.plan.make_plan", lambda path: Plan(path.stem), raising=False)
    monkeypatch.setattr("rankfall.run.snakemake.jobs.PlanJobs", lambda plan: SimpleNamespace(all_jobs=[]))


def test_the_command_shows_first_and_deletes_only_when_told(plans, tmp_path, capsys):
    store = Store(tmp_path / "store")
    live, dead, other = save(store, "ab"), save(store, "c"), save(store, "x")
    store.save_rows("paths", {"short ones-b": [], "paths-z": []})
    store.save_rows("law", {"law-None": []})
    command = ["gc", "--config", "a.yaml", "bx.yaml", "--results", str(tmp_path)]
    assert cli.main([*command, "--keep-days", "0"]) == 0
    output = capsys.readouterr().out
    assert "would remove 1 file" in output
    assert "--delete" in output
    assert dead.exists()
    assert cli.main([*command, "--delete"]) == 0
    assert dead.exists()  # it is young
    assert "1 unneeded, written in the last 7 days: kept" in capsys.readouterr().out
    os.utime(dead, (time.time() - 6.9 * 86_400,) * 2)
    assert cli.main([*command, "--delete"]) == 0
    assert dead.exists()
    os.utime(dead, (time.time() - 7.1 * 86_400,) * 2)
    assert cli.main([*command, "--delete", "--files"]) == 0
    assert f"{dead}: no cell of it is in the plan" in capsys.readouterr().out
    assert not dead.exists()
    assert live.exists()
    assert other.exists()
    assert store.find_rows("paths", ["short ones-b"]) == {"short ones-b": []}
    assert store.find_rows("law", ["law-None"]) == {"law-None": []}
    assert cli.main(command) == 0
    assert "nothing to remove" in capsys.readouterr().out


def cell(key):
    return SimpleNamespace(key=key, data_key=f"d{key}")


def test_what_a_live_run_announced_is_kept_though_it_is_old(plans, tmp_path, capsys):
    store, other = Store(tmp_path / "store"), Store(tmp_path / "store")
    needed, dead = save(store, "x"), save(store, "y")
    rows = store.save_rows("law", {digest("key of law", "x"): [{"a": 1}], digest("key of law", None): []})
    store.dataset("dx", lambda: dataset_of(*[torch.zeros(1)] * 4, size_in=1, size_out=1, chance=0.0))
    data = store.root / "data" / "dx.safetensors"
    announcement = other.announce([cell("x")], {"law": ["key of law"]})
    for path in (needed, dead, rows, data):
        os.utime(path, (0, 0))
    command = ["gc", "--config", "a.yaml", "--results", str(tmp_path), "--delete"]
    assert cli.main(command) == 0
    assert "1 running process needs this store" in capsys.readouterr().out
    assert not dead.exists()
    assert all(path.exists() for path in (needed, rows, data, announcement))
    del other  # the run has ended
    assert not announcement.exists()
    assert cli.main(command) == 0
    assert not any(path.exists() for path in (needed, rows, data))


def test_an_announcement_of_a_real_plan_covers_its_rows(tmp_path):
    from rankfall.commands.gc import add_needed_by_running, find_needed

    store = Store(tmp_path / "store")
    raw = config(
        measures={
            "paths": {"counts": [2], "cells": {"seed": 0}},
            "more": {"measure": "paths", "counts": [2], "cells": {"seed": 1}},
            "orders": {},
        },
        grid={"seed": "0..1"},
    )
    plan = make_plan(raw)
    run = RunPlan.make(plan, raw, tmp_path)
    run.write()
    found, wanted = Live(), find_needed([plan])
    assert add_needed_by_running(store, found) == 1
    assert (found.cells, found.data) == (wanted.cells, wanted.data)
    assert all(wanted.measures[name] <= found.measures[name] for name in ("paths", "orders"))


def test_announcements_of_the_dead_count_no_more(store, tmp_path, capsys, plans):
    killed = subprocess.Popen(
        [sys.executable, "-c", ANNOUNCER, str(store.root)], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert killed.stdout.readline() == "ready\n"
    (path,) = (store.root / "announced").iterdir()
    assert [one.cells for one in read_announcements(store)[0]] == [["x"]]
    killed.kill()
    killed.wait()
    assert read_announcements(store) == ([], [path])
    elsewhere = path.with_name("elsewhere.json")
    elsewhere.write_text(json.dumps(json.loads(path.read_text()) | {"machine": "node7 pid:[1]"}))
    live, dead = read_announcements(store)
    assert [one.path for one in live] == [elsewhere] and dead == [path]
    assert cli.main(["gc", "--config", "a.yaml", "--results", str(tmp_path), "--delete"]) == 0
    assert list((store.root / "announced").iterdir()) == [elsewhere]


ANNOUNCER = """
import sys, time
from types import SimpleNamespace
from rankfall.run.store import Store
store = Store(sys.argv[1])
assert store.announce([SimpleNamespace(key="x", data_key="d")])
print("ready", flush=True)
time.sleep(60)
"""


def test_plans_of_former_runs_go_when_nothing_runs(tmp_path, capsys):
    """With all that is in them. One that a run has used again this week stays, and all of them while anything works here."""
    raw = config() | {"results": str(tmp_path / "results")}
    file = tmp_path / "config.json"
    file.write_text(json.dumps(raw))
    old, new = (RunPlan.make(make_plan(one), one) for one in (raw, raw | {"name": "another"}))
    for run in (old, new):
        run.write()
        os.utime(run.folder, (1, 1))
    os.utime(new.folder)
    (tmp_path / "results" / "plan" / "0123.json").write_text("{}")  # as former versions wrote it
    os.utime(tmp_path / "results" / "plan" / "0123.json", (1, 1))
    clean = ["gc", "--config", str(file), "--delete"]
    assert cli.main(clean) == 0
    gone, stays = old.folder, new.folder
    assert gone.is_dir()
    del run, old, new  # they have announced to the store what they need
    assert cli.main(clean[:-1]) == 0
    assert gone.is_dir()
    assert cli.main(clean) == 0
    assert list((tmp_path / "results" / "plan").iterdir()) == [stays]
    assert (stays / "jobs.json").is_file()
    assert "plan " in capsys.readouterr().out


def test_work_files_that_no_named_configuration_asks_for_go_with_their_logs(tmp_path, capsys):
    """Keep what is written this week, everything while a run works here, and what another named configuration asks for."""
    raws = [config() | {"results": str(tmp_path / "results")}]
    raws += [raws[0] | {"trainings": {"short": {"lr": rate, "epochs": 1}}} for rate in (0.5, 0.25)]
    paths, files = [], []
    for number, raw in enumerate(raws):
        paths.append(tmp_path / f"{number}.json")
        paths[-1].write_text(json.dumps(raw))
        jobs = RunPlan.make(make_plan(raw), raw).jobs.values()
        files.append({tmp_path / "results" / name for job in jobs for name in (*job.files, job.log)})
        for path in files[-1]:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
            os.utime(path, (1, 1))
    fresh = min(files[2] - files[0] - files[1])
    fresh.touch()
    (tmp_path / "results" / "logs" / "run.log").touch()
    clean = ["gc", "--config", str(paths[0]), str(paths[1]), "--delete"]
    assert cli.main(clean) == 0
    left = {path for part in ("work", "logs") for path in (tmp_path / "results" / part).rglob("*") if path.is_file()}
    assert left == files[0] | files[1] | {fresh, tmp_path / "results" / "logs" / "run.log"}
    assert re.search(r"^work file +\d+ files", capsys.readouterr().out, re.MULTILINE)


def test_a_wrong_clock_of_this_machine_removes_nothing(plans, tmp_path, monkeypatch, capsys):
    """Ages are those by the clock of the file system. By this machine's, all files are a month old, and other machines' jobs have ended."""
    store = Store(tmp_path / "store")
    young, announced = save(store, "c"), save(store, "x")
    path = Store(tmp_path / "store").announce([cell("x")])
    elsewhere = path.with_name("elsewhere.json")
    elsewhere.write_text(
        json.dumps({"machine": "node7 pid:[1]", "pid": 1, "began": "", "cells": ["x"], "data": [], "measures": {}})
    )
    os.utime(announced, (time.time() - 8 * 86_400,) * 2)
    present = time.time()
    monkeypatch.setattr(time, "time", lambda: present + 30 * 86_400)
    assert cli.main(["gc", "--config", "a.yaml", "--results", str(tmp_path), "--delete"]) == 0
    assert young.exists() and announced.exists() and elsewhere.exists()


def test_a_bucket_is_cleaned_by_the_same_rule(plans, tmp_path, monkeypatch):
    clean_bucket(f"file://{tmp_path}/bucket", None, tmp_path, monkeypatch)


def clean_bucket(url, endpoint, folder, monkeypatch):
    """Clean from another machine than the one that wrote the bucket. Its folder is empty, and running jobs keep what they announced."""
    for name in ("one", "other"):
        Objects(folder / name, url, endpoint).mark()
    one, running = Store(folder / "one" / "store"), Store(folder / "one" / "store")
    live, dead, _ = save(one, "ab"), save(one, "c"), save(one, "x")
    rows = [one.save_rows("paths", {key: []}).name for key in ("short ones-a", "paths-z")]
    for key in ("da", "dz"):
        one.dataset(key, lambda: dataset_of(*[torch.zeros(1)] * 4, size_in=1, size_out=1, chance=0.0))
    for name in ("work/train/0123.parquet", "logs/train/0123.log", "plan/0123/jobs.json"):
        (folder / "one" / name).parent.mkdir(parents=True)
        (folder / "one" / name).touch()
        one.objects.put(folder / "one" / name)
    announcement = running.announce([cell("x")])
    monkeypatch.setattr("rankfall.run.store.announced.machine", lambda: "another machine")

    def names():
        return {name for part in ("store", "work", "logs", "plan") for name in one.objects.list_all(part)}

    command = ["gc", "--config", "a.yaml", "--results", str(folder / "other"), "--delete"]
    before = names()
    assert cli.main(command) == 0
    assert names() == before, "it is young"
    assert cli.main([*command, "--keep-days", "0"]) == 0
    stacks = {f"store/{kind}/g/{dead.name}" for kind in ("stacks", "headers")}
    assert before - names() == {*stacks, f"store/measures/paths/{rows[1]}", "store/data/dz.safetensors"}
    assert f"store/announced/{announcement.name}" in names()
    del running
    assert f"store/announced/{announcement.name}" not in names()
    assert cli.main([*command, "--keep-days", "0"]) == 0
    kept = {f"store/{kind}/g/{live.name}" for kind in ("stacks", "headers")}
    assert names() == kept | {f"store/measures/paths/{rows[0]}", "store/data/da.safetensors"}
    assert one.load_cells(["a", "b"])
