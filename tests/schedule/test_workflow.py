"""Guards what the Snakefile does with Snakemake's own objects."""

import threading
import types
from types import SimpleNamespace

from snakemake.scheduling import job_scheduler

from rankfall.schedule.workflow import SCHEDULER, forget_timers, kind_of


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
