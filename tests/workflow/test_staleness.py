"""What an edit makes stale: real Snakemake runs on a throw-away copy, counting jobs run and cells trained.

One finished run is the base; every scenario copies it, changes one thing, and runs again.
"""

import os
import shutil
import signal
import time
from pathlib import Path

import pyarrow.compute as pc
import pytest
from checkout import CONFIG, Checkout, changed

from rankfall.report.runs import differences

pytestmark = pytest.mark.slow  # each starts Snakemake, most of them several times

CELLS = 4  # two architectures x two seeds


@pytest.fixture
def checkout(base: Checkout, tmp_path: Path) -> Checkout:
    return base.copy(tmp_path / "checkout")


def edit(checkout: Checkout, name: str) -> None:
    """Change a source file's meaning, as far as anyone can tell without running it."""
    path = checkout.source(name)
    path.write_text(path.read_text() + "\n_edited = 1\n")


def test_edited_figure_redraws_that_figure_only(checkout: Checkout) -> None:
    edit(checkout, "rank/paths/figure.py")
    assert checkout.run().labelled == {"figure": 1}


def test_edited_component_trains_exactly_the_cells_that_use_it(checkout: Checkout) -> None:
    before, old = checkout.table("cells").to_pylist(), checkout.kept()
    edit(checkout, "nets/normalisers/l2.py")
    done = checkout.run()
    assert done.trained == 2
    assert {"train", "measure", "table", "figure"} <= set(done.jobs)
    fresh = {row["key"]: row for row in checkout.table("cells").to_pylist()}
    assert {row["architecture"] for row in before if row["key"] not in fresh} == {"far"}
    assert checkout.kept() == old | set(fresh)
    assert len(checkout.kept()) == CELLS + 2


def test_edited_trainer_trains_all_cells(checkout: Checkout) -> None:
    edit(checkout, "train/loop.py")
    assert checkout.run().trained == CELLS


def test_edited_machinery_trains_nothing(checkout: Checkout) -> None:
    for name in ("run/store/__init__.py", "run/jobs/progress.py", "cli.py", "errors.py"):
        edit(checkout, name)
    assert checkout.run().trained == 0


def test_edited_measure_trains_nothing(checkout: Checkout) -> None:
    edit(checkout, "rank/paths/measure.py")
    done = checkout.run()
    assert done.trained == 0
    assert "train" not in done.jobs
    assert {"measure", "table", "figure"} <= set(done.jobs)


def test_added_seed_trains_that_seed_only(checkout: Checkout) -> None:
    old = checkout.kept()
    grid = changed(CONFIG)["grid"]
    grid[0]["seed"] = [0, 1, 2]
    checkout.configure(changed(CONFIG, grid=grid))
    done = checkout.run()
    assert done.trained == 2
    assert not checkout.run().jobs
    rows = checkout.table("cells").to_pylist()
    assert {row["seed"] for row in rows if row["key"] not in old} == {2}
    assert len(rows) == CELLS + 2


def test_removed_architecture_trains_nothing_and_shrinks_the_tables(checkout: Checkout) -> None:
    before = checkout.table("paths")
    grid = changed(CONFIG)["grid"]
    grid[0]["architecture"] = ["soft"]
    checkout.configure(changed(CONFIG, grid=grid))
    done = checkout.run()
    assert done.trained == 0
    assert {row["architecture"] for row in checkout.table("cells").to_pylist()} == {"soft"}
    assert set(done.jobs) == {"train", "measure", "table", "figure"}
    assert not differences(checkout.table("paths"), before.filter(pc.equal(before["architecture"], "soft")))
    assert not checkout.run().jobs


def test_reverted_edit_finds_the_old_files(checkout: Checkout) -> None:
    """Nothing is computed and nothing is looked up; the names that people read get their old content back."""
    before, text = checkout.table("paths"), checkout.source("train/members.py").read_text()
    edit(checkout, "train/members.py")
    assert checkout.run().trained == CELLS
    assert checkout.table("cells")["key"] != before["key"]
    checkout.source("train/members.py").write_text(text)
    assert not checkout.run().jobs
    assert not differences(checkout.table("paths"), before)


def test_parts_that_nobody_needs_and_records_of_snakemake_are_not_missed(checkout: Checkout) -> None:
    for kind in ("data", "train", "measure"):
        shutil.rmtree(checkout.results / "work" / kind)
    shutil.rmtree(checkout.folder / ".snakemake")
    assert not checkout.run().jobs


def test_a_table_edited_by_hand_is_published_again(checkout: Checkout) -> None:
    """The work file that other files are made from is whole."""
    paths = [checkout.results / "tables" / "paths.parquet", checkout.results / "figures" / "paths.svg"]
    before = [path.read_bytes() for path in paths]
    paths[0].write_bytes(b"edited")
    paths[1].unlink()
    assert not checkout.run().jobs
    assert [path.read_bytes() for path in paths] == before


def test_two_checkouts_with_one_folder_of_results(checkout: Checkout, tmp_path: Path) -> None:
    """The second finds all that the first has made; an edit in one is no edit in the other."""
    other = Checkout.make(tmp_path / "other")
    other.results.symlink_to(checkout.results)
    assert not other.run().jobs
    edit(other, "rank/paths/figure.py")
    assert other.run().labelled == {"figure": 1}
    assert not checkout.run().jobs
    assert not other.run().jobs


def test_fresh_clone_with_the_store_trains_nothing(base: Checkout, tmp_path: Path) -> None:
    """All that moved is the store: none of what Snakemake remembers, no work files, no tables."""
    clone = Checkout.make(tmp_path / "elsewhere" / "clone")
    shutil.copytree(base.results / "store", clone.results / "store")
    done = clone.run()
    assert done.trained == 0
    assert done.labelled == {"data": 1, "train": 1, "measure": 1, "table": 4, "figure": 1}
    assert not clone.run().jobs
    assert clone.kept() == base.kept()
    assert not differences(clone.table("paths"), base.table("paths"))


def test_damaged_stack_is_set_aside_and_trained_again(checkout: Checkout) -> None:
    """One byte of the tensors, which a look at the header does not show."""
    before, epochs = checkout.table("paths"), checkout.table("training")
    victim = checkout.stacks()[0]
    content = bytearray(victim.read_bytes())
    content[-100] ^= 1
    victim.write_bytes(content)
    for part in ("work", "tables", "figures", "store/measures"):  # so that everything is looked up again
        shutil.rmtree(checkout.results / part)
    done = checkout.run()
    assert done.trained == 2
    assert any((checkout.results / "store" / "damaged").iterdir())
    assert not differences(checkout.table("paths"), before)
    assert not differences(checkout.table("training"), epochs)


LONG = changed(
    CONFIG,
    trainings={"short": {"lr": 1.0e-3, "epochs": 400, "batch": 30}},
    compute={"engine": "plain", "threads": 1, "stack": 1, "checkpoint_seconds": 1},
)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    made = Checkout.make(tmp_path_factory.mktemp("undisturbed") / "checkout", LONG)
    made.run()
    return made


def test_killed_run_resumes(undisturbed: Checkout, tmp_path: Path) -> None:
    checkout = Checkout.make(tmp_path / "checkout", LONG)
    process = checkout.start()
    limit = time.monotonic() + 120
    while not (finished := checkout.kept() if checkout.stacks() else set()):
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < limit
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert len(finished) < CELLS, "everything had finished: nothing is tested"
    finished = checkout.kept()
    checkout.run("--unlock")
    resumed = checkout.run()
    assert resumed.trained == CELLS - len(finished)
    assert not differences(checkout.table("paths"), undisturbed.table("paths"))


def test_two_runs_over_one_store(undisturbed: Checkout, tmp_path: Path) -> None:
    pair = [Checkout.make(tmp_path / name, LONG) for name in ("one", "two")]
    shared = tmp_path / "store"
    shared.mkdir()
    for checkout in pair:
        checkout.results.mkdir()
        (checkout.results / "store").symlink_to(shared)
    processes = [checkout.start() for checkout in pair]
    for checkout, process in zip(pair, processes):
        done = checkout.finish(process)
        assert done.code == 0, done.output
        assert not differences(checkout.table("paths"), undisturbed.table("paths"))
    assert len(pair[0].kept()) == CELLS
    assert not list(shared.glob("damaged/*"))
