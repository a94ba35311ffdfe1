"""Guards what is made again: outputs that say they were made for something else, whatever their times; and only these."""

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from plans import VALID, changed

from rankfall.cli import main
from rankfall.errors import RankfallError
from rankfall.report import tables
from rankfall.report.style import CAPTION, MADE, digest_of
from rankfall.run.plan import make_plan
from rankfall.run.snakemake.job_fingerprints import JobFingerprint, JobFingerprints
from rankfall.run.snakemake.lookups import ShardJob
from rankfall.run.snakemake.outputs import Outputs
from rankfall.run.snakemake.up_to_date import OutputStates, inspect_outputs
from rankfall.run.snakemake.wiring import Wiring

CONFIG = changed(
    "compute", {"shard_minutes": 0.003}, changed("figures", {"paths": {}}, changed("grid/0/depth", "1..6"))
)
HOUR = 3600
SHOWS = "What it shows."


def written(path: str, table: str, fingerprint: JobFingerprint) -> None:
    tables.write(table, [], Path(path), tables.provenance() | fingerprint.record())


def make_all(config: Any, folder: Path) -> Outputs:
    """Outputs without rows, as finished jobs leave them."""
    outputs, fingerprints = Outputs.under(folder / "results"), JobFingerprints(make_plan(config))
    for task, shard in fingerprints.plan.shards:
        written(outputs.data(task), "datasets", fingerprints.data(task))
        written(outputs.cells(task, shard), "cells", fingerprints.train(task, shard))
        written(outputs.training(task, shard), "training", fingerprints.train(task, shard))
        written(outputs.measure_shard("paths", task, shard), "paths", fingerprints.measure("paths", task, shard))
    for table in fingerprints.tables:
        written(outputs.table(table), table, fingerprints.table(table))
    draw(outputs, fingerprints.figure("paths"))
    return outputs


def draw(outputs: Outputs, fingerprint: JobFingerprint, content: str = "picture") -> None:
    picture = Path(outputs.picture("paths"))
    picture.parent.mkdir(parents=True, exist_ok=True)
    for path in (picture.with_suffix(f".{suffix}") for suffix in MADE):
        path.write_text(f"{content} {path.suffix}")
    record = fingerprint.record() | {CAPTION: digest_of(SHOWS.encode())}
    record |= {suffix: digest_of(picture.with_suffix(f".{suffix}").read_bytes()) for suffix in MADE}
    Path(outputs.caption("paths")).write_text(f"{SHOWS}\n\n.. made: {json.dumps(record)}\n")


def look(config: Any, outputs: Outputs) -> OutputStates:
    plan = make_plan(config)
    return inspect_outputs(plan, JobFingerprints(plan), outputs)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    make_all(CONFIG, folder)
    return folder


@pytest.fixture
def outputs(finished: Path, tmp_path: Path) -> Outputs:
    shutil.copytree(finished / "results", tmp_path / "results")
    return Outputs.under(tmp_path / "results")


LR = changed("trainings/short/lr", 0.5, CONFIG)


def test_what_was_made_for_this_plan_stands_whatever_its_times(outputs: Outputs) -> None:
    for number, path in enumerate(sorted(Path(outputs.folder).rglob("*"))):
        os.utime(path, (1_000_000 * number, 1_000_000 * number))
    found = look(CONFIG, outputs)
    assert found.right
    assert not found.lines()


def test_another_configuration_makes_all_that_it_touches_again(outputs: Outputs) -> None:
    for path in Path(outputs.folder).rglob("*"):  # a clock that is ahead makes nothing look newer than it is
        os.utime(path, (os.path.getmtime(path) + HOUR,) * 2)
    found = look(LR, outputs)
    assert not found.missing
    again = set(found.stale)
    assert {outputs.table(name) for name in ("cells", "training", "paths")} | {outputs.picture("paths")} <= again
    assert outputs.table("datasets") not in again, "the data are the same"
    assert found.shards == set(make_plan(LR).shards)
    assert {outputs.cells(*place) for place in found.shards} <= again
    assert outputs.data("sorting") not in again


def test_reasons_name_the_edited_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "standlab.py").write_text("def sharp(scores): return scores\n")
    config = changed("architectures/full/normaliser", "standlab:sharp", CONFIG)
    outputs = make_all(config, tmp_path)
    (tmp_path / "standlab.py").write_text("def sharp(scores): return -scores\n")
    found = look(config, outputs)
    edited = [path for path, why in found.stale.items() if why == "standlab.py changed"]
    assert set(edited) == {outputs.cells(*p) for p in found.shards} | {outputs.training(*p) for p in found.shards}
    assert found.shards < set(make_plan(config).shards), "an edit should leave some shard alone"
    assert any("standlab.py changed; made again" in line for line in found.lines())


def test_a_table_of_another_configuration_is_made_again_from_shards_that_stand(outputs: Outputs) -> None:
    plan = make_plan(LR)
    written(outputs.table("paths"), "paths", JobFingerprints(plan).table("paths"))
    found = look(CONFIG, outputs)
    assert set(found.stale) == {outputs.table("paths")}
    assert not found.shards, "nothing has to be trained or looked up for it"


def test_a_foreign_shard_is_made_again_with_the_table_above_it(outputs: Outputs) -> None:
    plan = make_plan(CONFIG)
    place, *_ = plan.shards
    foreign = JobFingerprints(make_plan(LR)).measure("paths", *place)
    written(outputs.measure_shard("paths", *place), "paths", foreign)
    os.utime(outputs.measure_shard("paths", *place), (0, 0))
    assert look(CONFIG, outputs).right, "beneath a table that stands nothing is asked"
    Path(outputs.table("paths")).unlink()
    found = look(CONFIG, outputs)
    assert found.missing == [outputs.table("paths")]
    assert set(found.stale) == {outputs.measure_shard("paths", *place)}
    assert found.shards == {place}


def test_a_foreign_shard_that_is_newer_than_its_table_is_made_again(outputs: Outputs) -> None:
    """Snakemake makes the table again for the newer time, and the table's job would refuse the shard."""
    place, *_ = make_plan(CONFIG).shards
    shutil.copyfile(outputs.data("sorting"), outputs.measure_shard("paths", *place))  # another table altogether
    os.utime(outputs.measure_shard("paths", *place), (os.path.getmtime(outputs.table("paths")) + 1,) * 2)
    found = look(CONFIG, outputs)
    assert set(found.stale) == {outputs.measure_shard("paths", *place)}
    assert found.shards == {place}


@pytest.mark.long
def test_a_figure_stands_only_with_its_own_pictures(outputs: Outputs) -> None:
    picture, caption = Path(outputs.picture("paths")), Path(outputs.caption("paths"))
    for harm in (
        lambda: draw(outputs, JobFingerprints(make_plan(LR)).figure("paths")),
        lambda: picture.write_text("another"),
        lambda: picture.with_suffix(".pdf").unlink(),
        lambda: picture.with_suffix(".svg").write_text("another"),
        lambda: picture.with_suffix(".csv").unlink(),
        lambda: caption.write_text(SHOWS),
        lambda: caption.write_text(caption.read_text().replace("What", "All that")),
    ):
        harm()
        assert set(look(CONFIG, outputs).stale) == {outputs.picture("paths")}
        draw(outputs, JobFingerprints(make_plan(CONFIG)).figure("paths"))
        assert look(CONFIG, outputs).right


@pytest.mark.parametrize("harm", [b"", b"PAR1 not a table PAR1"])
def test_what_cannot_be_read_is_made_again(harm: bytes, outputs: Outputs) -> None:
    Path(outputs.table("cells")).write_bytes(harm)
    assert look(CONFIG, outputs).stale == {outputs.table("cells"): "does not say what it was made for"}


def multiplied(path: str) -> None:
    """The same table with other numbers, its metadata kept, as a few lines of pyarrow write it."""
    data = pq.read_table(path, partitioning=None)
    places = [place for place, kind in enumerate(data.schema.types) if kind == pa.float64()]
    for place in places:
        data = data.set_column(place, data.schema.field(place), pc.multiply(data.column(place), 100.0))
    assert places
    pq.write_table(data, path)


CHANGED = "was changed after it was written"


def test_a_table_with_other_numbers_is_made_again(outputs: Outputs) -> None:
    multiplied(outputs.table("paths"))
    found = look(CONFIG, outputs)
    assert found.stale == {outputs.table("paths"): CHANGED}
    assert not found.shards, "its shards are as they were written"


def test_a_shard_with_other_numbers_is_made_again(outputs: Outputs) -> None:
    place, *_ = make_plan(CONFIG).shards
    multiplied(outputs.measure_shard("paths", *place))
    os.utime(outputs.measure_shard("paths", *place), (os.path.getmtime(outputs.table("paths")) + 1,) * 2)
    assert look(CONFIG, outputs).stale == {outputs.measure_shard("paths", *place): CHANGED}


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.8, 0.9, 0.95, 0.99])
def test_one_flipped_bit_makes_a_table_again(share: float, outputs: Outputs) -> None:
    """Also in its footer, where it may change no row: every byte counts."""
    path = Path(outputs.table("cells"))
    content = bytearray(path.read_bytes())
    content[int(share * len(content))] ^= 1
    path.write_bytes(content)
    assert set(look(CONFIG, outputs).stale) == {str(path)}


def test_two_files_of_one_job_in_each_other_s_place_are_made_again(outputs: Outputs) -> None:
    """They say that they were made for the same, as one job makes both."""
    plan = make_plan(CONFIG)
    place, *_ = plan.shards
    cells, training = Path(outputs.cells(*place)), Path(outputs.training(*place))
    texts = cells.read_bytes(), training.read_bytes()
    cells.write_bytes(texts[1])
    training.write_bytes(texts[0])
    found = look(CONFIG, outputs)
    assert found.stale == {str(cells): "holds the table 'training'", str(training): "holds the table 'cells'"}
    assert ShardJob(*place) in found.computing


def test_a_pipe_in_a_table_s_place_is_not_waited_for(outputs: Outputs) -> None:
    path = Path(outputs.table("cells"))
    path.unlink()
    os.mkfifo(path)
    assert set(look(CONFIG, outputs).stale) == {str(path)}


def test_a_run_with_nothing_to_do_opens_no_shard(outputs: Outputs, monkeypatch: pytest.MonkeyPatch) -> None:
    from rankfall.run.snakemake import up_to_date as module

    opened: list[str] = []
    whole = module.record_of
    monkeypatch.setattr(module, "record_of", lambda path, table: opened.append(path) or whole(path, table))
    assert look(CONFIG, outputs).right
    assert set(opened) == {outputs.table(name) for name in ("cells", "datasets", "paths", "training")}


@pytest.fixture
def config_file(tmp_path: Path) -> Path:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(changed("results", str(tmp_path / "results"), CONFIG)))
    return path


def test_a_job_stops_that_was_planned_for_another_configuration(
    outputs: Outputs, config_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place, *_ = make_plan(CONFIG).shards
    out = tmp_path / "out"
    jobs = [
        ["data", "--task", place[0]],
        ["train", "--task", place[0], "--shard", place[1]],
        ["measure", "--measure", "paths", "--task", place[0], "--shard", place[1]],
        ["table", "--name", "paths"],
        ["figure", "--name", "paths"],
    ]
    for job in jobs:
        assert main([*job, "--config", str(config_file), "--expect", "0" * 24, "--out", str(out)]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert "the configuration or the code changed since this run was planned" in line
        assert not out.exists()


@pytest.mark.long
def test_a_job_stops_with_another_package_than_planned_it(
    config_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = Path(tables.__file__).parents[1]
    job = ["table", "--name", "datasets", "--config", str(config_file), "--out", str(tmp_path / "out.parquet")]
    assert main([*job, "--package", str(tmp_path / "elsewhere" / "rankfall")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert str(own) in line and str(tmp_path / "elsewhere" / "rankfall") in line
    make_all(json.loads(config_file.read_text()), tmp_path)
    assert main([*job, "--package", str(own)]) == 0


def test_the_table_command_takes_its_shards_from_the_plan(outputs: Outputs, config_file: Path) -> None:
    plan = make_plan(config_file)
    Path(outputs.table("cells")).unlink()
    assert main(["table", "--name", "cells", "--config", str(config_file)]) == 0
    assert look(CONFIG, outputs).right
    place, *_ = plan.shards
    written(outputs.cells(*place), "cells", JobFingerprints(make_plan(LR)).train(*place))
    assert main(["table", "--name", "cells", "--config", str(config_file)]) == 2


def test_a_figure_is_not_drawn_from_a_table_of_another_configuration(
    outputs: Outputs, config_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(outputs.table("paths"), "paths", JobFingerprints(make_plan(LR)).table("paths"))
    job = ["figure", "--name", "paths", "--config", str(config_file), "--out", str(tmp_path / "out.png")]
    assert main(job) == 2
    assert "paths.parquet was made for another configuration" in capsys.readouterr().err
    assert not (tmp_path / "out.png").exists()


def test_files_dated_ahead_get_the_present_time(outputs: Outputs, config_file: Path) -> None:
    """Else Snakemake fails every job that reads them: on a cluster, they may come from a node whose clock is ahead."""
    ahead, before = Path(outputs.data("sorting")), Path(outputs.table("cells"))
    os.utime(ahead, (time.time() + HOUR,) * 2)
    os.utime(before, (1, 1))
    Wiring(json.loads(config_file.read_text())).begin()
    assert abs(ahead.stat().st_mtime - time.time()) < HOUR / 2
    assert before.stat().st_mtime == 1


@pytest.mark.parametrize("results", ["{a}", "a\nb", "-x", " a", "a/{b}/c", "~/x"])
def test_a_folder_that_no_rule_can_name_is_refused(results: str) -> None:
    with pytest.raises(RankfallError, match="results") as caught:
        make_plan(changed("results", results))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "results", ["a b", "x$(touch pwned)", "it's", 'say "so"', "a:b", "résultats", "a;b&c", "./a//b/"]
)
def test_any_other_folder_will_do(results: str) -> None:
    assert make_plan(changed("results", results)).config.results == results


@pytest.mark.parametrize("name", ["config.yaml", "config.json"])
def test_a_key_that_is_there_twice_is_refused(name: str, tmp_path: Path) -> None:
    text = json.dumps(VALID)
    (tmp_path / name).write_text(text[:-1] + ', "name": "one", "name": "two"}')
    with pytest.raises(RankfallError, match="the key 'name' is there twice"):
        make_plan(tmp_path / name)


def test_a_lost_store_computes_nothing_that_the_tables_have(
    outputs: Outputs, config_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The plan and Snakemake agree: what stands is not computed again because the networks behind it are gone."""
    cells = len(make_plan(CONFIG).cells)
    assert not (Path(outputs.folder) / "store").exists()
    assert main(["plan", "--config", str(config_file)]) == 0
    said = capsys.readouterr().out
    assert f"{cells} of them kept: their networks are no longer in the store" in said
    assert "to compute in" not in said
    shutil.rmtree(Path(outputs.folder) / "tables")
    assert main(["plan", "--config", str(config_file)]) == 0
    assert "to compute in" not in capsys.readouterr().out, "tables are combined from shards that stand"
    shutil.rmtree(Path(outputs.folder) / "shards" / "measure")
    assert main(["plan", "--config", str(config_file)]) == 0
    assert f"{cells} to compute in" in capsys.readouterr().out
