"""Guards what the Snakefile does with Snakemake's own objects."""

import threading
import types
from pathlib import Path
from types import SimpleNamespace

import pytest
from snakemake.scheduling import job_scheduler

from rankfall.run.snakemake.workflow import SCHEDULER, failed_for_page, forget_timers, kind_of


def test_only_the_schedulers_timers_are_cancelled() -> None:
    """Somebody else's may have to fire."""
    wake = types.FunctionType((lambda: None).__code__, vars(job_scheduler))
    ours, others = threading.Timer(60, wake), threading.Timer(60, lambda: None)
    try:
        ours.start()
        others.start()
        forget_timers()
        ours.join(10)
        assert not ours.is_alive() and others.is_alive()
    finally:
        others.cancel()
    assert job_scheduler.__name__ == SCHEDULER


def test_the_server_is_told_the_rule_or_the_measure() -> None:
    jobs = [SimpleNamespace(rule=SimpleNamespace(name=name), wildcards=given) for name, given in (
        ("train", {"task": "sorting", "shard": "0"}),
        ("measure", {"measure": "law", "task": "sorting", "shard": "0"}),
        ("measure_freely", {"measure": "orders"}),
        ("page", {}),
    )]  # fmt: skip
    assert [kind_of(job) for job in jobs] == ["train", "measure law", "measure orders", "page"]


def job(rule: str) -> SimpleNamespace:
    return SimpleNamespace(rule=SimpleNamespace(name=rule), output=[f"{rule}.png", f"{rule}.rst"], log=[f"{rule}.log"])


@pytest.mark.parametrize(
    ("about", "rules", "found"),
    [
        ({"failed": {"figure"}}, ["page", "figure"], {"figure.png": Path("figure.log")}),
        ({"failed": {"figure"}}, ["figure"], {}),  # the page was not asked for
        ({"failed": {"figure"}, "running": {"train"}}, ["page"], {}),  # Ctrl-C
        ({"failed": {"figure"}, "_user_kill": "graceful"}, ["page"], {}),  # SIGTERM
        ({}, ["page"], {}),
    ],
)
def test_the_page_is_made_of_what_there_is_unless_the_run_was_interrupted(
    about: dict[str, object], rules: list[str], found: dict[str, Path]
) -> None:
    given = {"failed": set(), "running": set(), "_user_kill": None} | about
    scheduler = SimpleNamespace(**given | {"failed": [job(rule) for rule in given["failed"]]})  # type: ignore[attr-defined]
    workflow = SimpleNamespace(scheduler=scheduler, dag=SimpleNamespace(jobs=[job(rule) for rule in rules]))
    assert failed_for_page(workflow) == found
