"""Guards the names that people read: copies of work files, made again where they differ; and what is said of files that are not there."""

from pathlib import Path
from typing import Any

import pytest
from plans import changed

from rankfall.errors import RankfallError
from rankfall.run.plan import make_plan
from rankfall.run.snakemake.publish import NOT_MADE, explain_lacking, is_published, publish
from rankfall.run.snakemake.run_plan import RunPlan

CONFIG = changed("figures", {"paths": {}})


def plan_run(folder: Path, config: Any = CONFIG) -> RunPlan:
    return RunPlan.make(make_plan(config), config, folder)


def make_files(run: RunPlan, keys: list[str] | None = None) -> None:
    """Work files, as jobs leave them, but for the content."""
    for key in run.jobs if keys is None else keys:
        for file in run.jobs[key].files:
            (run.results / file).parent.mkdir(parents=True, exist_ok=True)
            (run.results / file).write_text(f"content of {file}")


def fail(run: RunPlan, key: str, why: str) -> None:
    log = run.results / run.jobs[key].log
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(why)


def test_all_that_is_there_is_copied_once(tmp_path: Path) -> None:
    run = plan_run(tmp_path)
    assert not is_published(run) and publish(run) == []
    make_files(run)
    assert set(publish(run)) == set(run.final)
    assert is_published(run) and publish(run) == []
    for name, file in run.final.items():
        assert (tmp_path / name).read_text() == f"content of {file}"
        assert not (tmp_path / name).samefile(tmp_path / file)


def test_what_was_edited_or_removed_is_copied_again(tmp_path: Path) -> None:
    run = plan_run(tmp_path)
    make_files(run)
    publish(run)
    table, picture = tmp_path / "tables" / "paths.parquet", tmp_path / "figures" / "paths.png"
    table.write_text(table.read_text()[::-1])  # as long as before
    picture.unlink()
    assert publish(run) == ["tables/paths.parquet", "figures/paths.png"]
    assert is_published(run)


def test_what_the_configuration_no_longer_names_goes_and_what_the_user_put_there_stays(tmp_path: Path) -> None:
    before = plan_run(tmp_path)
    make_files(before)
    publish(before)
    run = plan_run(tmp_path, CONFIG | {"figures": {}})
    make_files(run)
    edited, mine = tmp_path / "figures" / "paths.svg", tmp_path / "figures" / "mine.png"
    edited.write_text("arrows were added")
    mine.write_text("drawn by hand")
    publish(run)
    assert {file.name for file in (tmp_path / "figures").iterdir()} == {"paths.svg", "mine.png"}
    assert (tmp_path / "tables" / "paths.parquet").is_file()
    publish(before)
    assert (tmp_path / "figures" / "paths.png").is_file()


def test_the_page_goes_when_the_configuration_turns_it_off(tmp_path: Path) -> None:
    run = plan_run(tmp_path, CONFIG | {"page": True})
    make_files(run)
    publish(run)
    assert (tmp_path / "report" / "index.html").is_file()
    without = plan_run(tmp_path)
    make_files(without)
    publish(without)
    assert not (tmp_path / "report" / "index.html").exists()


def test_two_configurations_with_one_folder_of_results_keep_each_others_copies(tmp_path: Path) -> None:
    drawn = plan_run(tmp_path, CONFIG | {"name": "drawn"})
    bare = plan_run(tmp_path, CONFIG | {"name": "bare", "figures": {}})
    for run in (drawn, bare):
        run.write()
        make_files(run)
        publish(run)
    assert (tmp_path / "figures" / "paths.png").is_file()
    edited = plan_run(tmp_path, CONFIG | {"name": "drawn", "figures": {}})
    make_files(edited)
    publish(edited)
    assert not (tmp_path / "figures" / "paths.png").exists()


def test_what_lacks_is_explained_by_the_log_of_the_job_that_failed(tmp_path: Path) -> None:
    run = plan_run(tmp_path)
    (measure,) = (key for key in run.jobs if key.startswith("measure/"))
    make_files(run, [key for key in run.jobs if key not in (measure, "table/paths", "figure/paths")])
    fail(run, measure, "Traceback\nValueError: no ink left\n")
    assert explain_lacking(run) == {"table paths": "ValueError: no ink left", "figure paths": NOT_MADE}


@pytest.mark.parametrize("log", [None, "checkpointed on SIGTERM; run again to go on\n"])
def test_of_an_interrupted_run_nothing_is_said(log: str | None, tmp_path: Path) -> None:
    run = plan_run(tmp_path)
    make_files(run, [key for key in run.jobs if key != "figure/paths"])
    if log is not None:
        fail(run, "figure/paths", log)
    with pytest.raises(RankfallError, match="the run ended before all jobs were done: figure paths"):
        explain_lacking(run)


def test_a_name_whose_work_file_is_missing_does_not_keep_an_earlier_one(tmp_path: Path) -> None:
    """After an edit and a run that failed, the table of the code before the edit was shown as that of the code after it."""
    run = plan_run(tmp_path)
    make_files(run)
    publish(run)
    edited = plan_run(tmp_path, changed("figures", {"paths": {"columns": 2}}))
    make_files(edited, [key for key in edited.jobs if key != "figure/paths"])
    publish(edited)
    assert not (tmp_path / "figures" / "paths.png").exists()
    assert (tmp_path / "tables" / "paths.parquet").is_file()
    publish(run)  # the edit is undone
    assert (tmp_path / "figures" / "paths.png").is_file()
