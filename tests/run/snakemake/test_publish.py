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


def plan_run(folder: Path, without: tuple[str, ...] | None = (), **changes: Any) -> RunPlan:
    """Plan a run, and write work files as its jobs leave them, but for the content; of all jobs but some, or (None) of none."""
    config = CONFIG | changes
    run = RunPlan.make(make_plan(config), config, folder)
    for key in run.jobs if without is not None else ():
        for file in run.jobs[key].files if key not in (without or ()) else ():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(f"content of {file}")
    return run


def write_log(run: RunPlan, key: str, text: str) -> None:
    log = run.results / run.jobs[key].log
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(text)


def test_all_that_is_there_is_copied_once_and_again_where_it_was_edited_or_removed(tmp_path: Path) -> None:
    run = plan_run(tmp_path, without=None)
    assert not is_published(run) and publish(run) == []
    run = plan_run(tmp_path)
    assert set(publish(run)) == set(run.final)
    assert is_published(run) and publish(run) == []
    for name, file in run.final.items():
        assert (tmp_path / name).read_text() == f"content of {file}"
        assert not (tmp_path / name).samefile(tmp_path / file)
    table, picture = tmp_path / "tables" / "paths.parquet", tmp_path / "figures" / "paths.png"
    table.write_text(table.read_text()[::-1])  # as long as before
    picture.unlink()
    assert publish(run) == ["tables/paths.parquet", "figures/paths.png"]
    assert is_published(run)


def test_what_the_configuration_no_longer_names_goes_and_what_the_user_put_there_stays(tmp_path: Path) -> None:
    before = plan_run(tmp_path, page=True)
    before.write()
    publish(before)
    page = tmp_path / "report" / "index.html"
    assert page.is_file()
    (tmp_path / "figures" / "paths.svg").write_text("arrows were added")
    (tmp_path / "figures" / "mine.png").write_text("drawn by hand")
    publish(plan_run(tmp_path, figures={}))
    assert {file.name for file in (tmp_path / "figures").iterdir()} == {"paths.svg", "mine.png"}
    assert (tmp_path / "tables" / "paths.parquet").is_file() and not page.exists()
    publish(before)
    assert (tmp_path / "figures" / "paths.png").is_file()


def test_two_configurations_with_one_folder_of_results_keep_each_others_copies(tmp_path: Path) -> None:
    for name, figures in (("drawn", CONFIG["figures"]), ("bare", {})):
        run = plan_run(tmp_path, name=name, figures=figures)
        run.write()
        publish(run)
    assert (tmp_path / "figures" / "paths.png").is_file()
    publish(plan_run(tmp_path, name="drawn", figures={}))
    assert not (tmp_path / "figures" / "paths.png").exists()


def test_what_lacks_is_explained_by_the_log_of_the_job_that_failed(tmp_path: Path) -> None:
    run = plan_run(tmp_path, without=("measure/paths/sorting/0", "table/paths", "figure/paths"))
    write_log(run, "measure/paths/sorting/0", "Traceback\nValueError: no ink left\n")
    assert explain_lacking(run) == {"table paths": "ValueError: no ink left", "figure paths": NOT_MADE}


@pytest.mark.parametrize("log", [None, "checkpointed on SIGTERM; run again to go on\n"])
def test_of_an_interrupted_run_nothing_is_said(log: str | None, tmp_path: Path) -> None:
    run = plan_run(tmp_path, without=("figure/paths",))
    if log is not None:
        write_log(run, "figure/paths", log)
    with pytest.raises(RankfallError, match="the run ended before all jobs were done: figure paths"):
        explain_lacking(run)


def test_a_name_whose_work_file_is_missing_does_not_keep_an_earlier_one(tmp_path: Path) -> None:
    """After an edit and a run that failed, the table of the code before the edit was shown as that of the code after it."""
    run = plan_run(tmp_path)
    publish(run)
    publish(plan_run(tmp_path, without=("figure/paths",), figures={"paths": {"columns": 2}}))
    assert not (tmp_path / "figures" / "paths.png").exists()
    assert (tmp_path / "tables" / "paths.parquet").is_file()
    publish(run)  # the edit is undone
    assert (tmp_path / "figures" / "paths.png").is_file()
