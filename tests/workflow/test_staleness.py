"""What an edit makes stale, and what one run does to another: real Snakemake runs on copies, counting jobs run and cells trained.

One finished run is the base; most scenarios copy it, change one thing, and run again.
"""

import os
import shutil
import signal
import time
from pathlib import Path

import pyarrow.compute as pc
import pytest
from checkout import CONFIG, Checkout, changed

from benchmarks.increments import dry_run, grow_grid, make_finished
from rankfall.report.runs import differences
from rankfall.run.plan import make_plan

pytestmark = pytest.mark.slow  # each starts Snakemake, most of them several times

CELLS = 4  # two architectures x two seeds


@pytest.fixture
def checkout(base: Checkout, tmp_path: Path) -> Checkout:
    return base.copy(tmp_path / "checkout")


def edit(checkout: Checkout, *names: str) -> None:
    """Change the meaning of source files, as far as anyone can tell without running them."""
    for name in names:
        path = checkout.source(name)
        path.write_text(path.read_text() + "\n_edited = 1\n")


@pytest.mark.parametrize(
    ("file", "rules"),
    [("rank/paths/figure.py", {"figure"}), ("rank/paths/measure.py", {"measure", "table", "figure"})],
)
def test_edited_measure_or_figure_makes_what_follows_and_trains_nothing(
    checkout: Checkout, file: str, rules: set[str]
) -> None:
    edit(checkout, file)
    done = checkout.run()
    assert done.trained == 0 and set(done.jobs) == rules


def test_edited_machinery_trains_nothing(checkout: Checkout) -> None:
    edit(checkout, "run/store/__init__.py", "run/jobs/progress.py", "cli.py", "errors.py")
    assert checkout.run().trained == 0


def test_edited_component_trains_exactly_the_cells_that_use_it(checkout: Checkout) -> None:
    before, old = checkout.table("cells").to_pylist(), checkout.kept()
    edit(checkout, "nets/normalisers/l2.py")
    done = checkout.run()
    assert done.trained == 2
    assert {"train", "measure", "table", "figure"} <= set(done.jobs)
    keys = set(checkout.table("cells")["key"].to_pylist())
    assert {row["architecture"] for row in before if row["key"] not in keys} == {"far"}
    assert checkout.kept() == old | keys and len(old | keys) == CELLS + 2


def test_added_seed_trains_that_seed_only(checkout: Checkout) -> None:
    old = checkout.kept()
    checkout.configure(changed(CONFIG, grid=[CONFIG["grid"][0] | {"seed": [0, 1, 2]}]))
    assert checkout.run().trained == 2
    assert not checkout.run().jobs
    rows = checkout.table("cells").to_pylist()
    assert {row["seed"] for row in rows if row["key"] not in old} == {2}
    assert len(rows) == CELLS + 2


def test_removed_architecture_trains_nothing_and_shrinks_the_tables(checkout: Checkout) -> None:
    before = checkout.table("paths")
    checkout.configure(changed(CONFIG, grid=[CONFIG["grid"][0] | {"architecture": ["soft"]}]))
    done = checkout.run()
    assert done.trained == 0 and set(done.jobs) == {"train", "measure", "table", "figure"}
    assert set(checkout.table("cells")["architecture"].to_pylist()) == {"soft"}
    assert not differences(checkout.table("paths"), before.filter(pc.equal(before["architecture"], "soft")))
    assert not checkout.run().jobs


def test_edited_trainer_trains_all_cells_and_a_reverted_edit_finds_the_old_files(checkout: Checkout) -> None:
    """Nothing is computed and nothing is looked up; the names that people read get their old content back."""
    before, text = checkout.table("paths"), checkout.source("train/members.py").read_text()
    edit(checkout, "train/members.py")
    assert checkout.run().trained == CELLS
    assert checkout.table("cells")["key"] != before["key"]
    checkout.source("train/members.py").write_text(text)
    assert not checkout.run().jobs
    assert not differences(checkout.table("paths"), before)


def test_parts_that_nobody_needs_and_records_of_snakemake_are_not_missed(checkout: Checkout) -> None:
    for part in ("results/work/data", "results/work/train", "results/work/measure", ".snakemake"):
        shutil.rmtree(checkout.folder / part)
    assert not checkout.run().jobs


def test_two_checkouts_with_one_folder_of_results(checkout: Checkout, tmp_path: Path) -> None:
    """The second finds all that the first has made; an edit in one is no edit in the other."""
    other = Checkout.make(tmp_path / "other")
    other.results.symlink_to(checkout.results)
    assert not other.run().jobs
    edit(other, "rank/paths/figure.py")
    assert other.run().jobs == {"figure": 1}
    assert not checkout.run().jobs and not other.run().jobs


def test_fresh_clone_with_the_store_trains_nothing(base: Checkout, tmp_path: Path) -> None:
    """All that moved is the store: none of what Snakemake remembers, no work files, no tables."""
    clone = Checkout.make(tmp_path / "elsewhere" / "clone")
    shutil.copytree(base.results / "store", clone.results / "store")
    done = clone.run()
    assert done.trained == 0 and done.jobs == {"data": 1, "train": 1, "measure": 1, "table": 4, "figure": 1}
    assert not clone.run().jobs
    assert clone.kept() == base.kept()
    assert not differences(clone.table("paths"), base.table("paths"))


def test_damaged_stack_is_set_aside_and_trained_again(checkout: Checkout) -> None:
    """One byte of the tensors, which a look at the header does not show."""
    before = {name: checkout.table(name) for name in ("paths", "training")}
    victim = checkout.stacks()[0]
    content = bytearray(victim.read_bytes())
    content[-100] ^= 1
    victim.write_bytes(content)
    for part in ("work", "tables", "figures", "store/measures"):  # so that everything is looked up again
        shutil.rmtree(checkout.results / part)
    assert checkout.run().trained == 2
    assert any((checkout.results / "store" / "damaged").iterdir())
    assert not any(differences(checkout.table(name), table) for name, table in before.items())


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
        assert process.poll() is None and time.monotonic() < limit
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert len(finished) < CELLS, "everything had finished: nothing is tested"
    finished = checkout.kept()
    checkout.run("--unlock")
    assert checkout.run().trained == CELLS - len(finished)
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


def with_rate(rate: float, epochs: int) -> dict[str, object]:
    return changed(CONFIG, trainings={"short": {"lr": rate, "epochs": epochs, "batch": 30}})


def read_rates(checkout: Checkout) -> set[float]:
    return {row["lr"] for name in ("cells", "paths") for row in checkout.table(name).to_pylist()}


def test_a_second_run_changes_nothing_of_a_live_one(tmp_path: Path) -> None:
    """The second has another configuration: once it only looks, once it is refused by the lock. Then outputs are dated an hour
    ahead, the configuration changes, and what Snakemake remembers is lost.
    """
    checkout = Checkout.make(tmp_path / "checkout", with_rate(1.0e-3, 60))
    live = checkout.start()
    limit = time.monotonic() + 120
    while not (plans := list((checkout.results / "plan").glob("*/jobs.json"))):
        assert live.poll() is None and time.monotonic() < limit
        time.sleep(0.05)
    (plan,) = plans
    before = plan.read_bytes(), plan.stat().st_mtime_ns
    checkout.configure(with_rate(3.0e-3, 2))
    assert checkout.finish(checkout.start_beside("--dry-run")).code == 0
    refused = checkout.finish(checkout.start_beside())
    assert refused.code != 0 and "LockException" in refused.output
    assert (plan.read_bytes(), plan.stat().st_mtime_ns) == before
    assert plan.parent in (checkout.results / "plan").iterdir(), "the refused run's own plan lies beside it"
    first = checkout.finish(live)
    assert first.code == 0, first.output
    assert read_rates(checkout) == {1.0e-3}

    for path in checkout.results.rglob("*"):
        os.utime(path, (time.time() + 3600,) * 2)
    shutil.rmtree(checkout.folder / ".snakemake")
    assert checkout.run().trained == 4  # from data that are dated ahead
    assert read_rates(checkout) == {3.0e-3}
    assert "Nothing to be done" in checkout.run().output


def test_a_grid_that_grows_submits_only_jobs_with_something_to_compute(tmp_path: Path) -> None:
    """On a cluster, of ten thousand cells: those with new cells, or of a shard that is divided. A new seed joins few shards."""
    configs = grow_grid()
    before = make_plan(configs["nothing"])
    shards = {frozenset(cell.key for cell in cells) for cells in before.shards.values()}
    checkout = make_finished(tmp_path / "checkout", configs["nothing"])
    for added in ("nothing", "one seed"):
        plan = make_plan(configs[added])
        working = [cells for cells in plan.shards.values() if frozenset(cell.key for cell in cells) not in shards]
        cost = dry_run(checkout, configs[added])
        assert cost.submitted == 2 * len(working)  # each trains, and measures
        assert bool(cost.jobs) is bool(working) is (added == "one seed") and len(working) < 0.1 * len(plan.shards)
        assert cost.seconds < 20
