"""Guards what the Snakefile reads and sets of Snakemake's own objects: a real run is asked for each."""

import json
import signal
import subprocess
import sys
import threading
import types
from pathlib import Path
from types import SimpleNamespace

import pytest
from snakemake.scheduling import job_scheduler

from rankfall.run.snakemake import internals
from rankfall.run.snakemake.internals import SCHEDULER, Internals, forget_timers, kind_of


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


def test_the_scheduler_is_woken_once_however_often_it_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    set_at: list[threading.Timer] = []
    monkeypatch.setattr(threading.Timer, "start", lambda timer: set_at.append(timer))
    scheduler = SimpleNamespace(_schedule_reevalutation=print, _open_jobs=threading.Semaphore(0))
    Internals(SimpleNamespace(scheduler=scheduler)).wake_once()
    for delay in (1, 1, 10, 1):
        scheduler._schedule_reevalutation(delay)
    assert [timer.interval for timer in set_at] == [1, 10]
    set_at[0].function()
    assert scheduler._open_jobs.acquire(blocking=False), "it is awake"
    scheduler._schedule_reevalutation(1)
    assert [timer.interval for timer in set_at] == [1, 10, 1], "and can be woken again"


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
    assert Internals(workflow).find_failed_for_page() == found


class Scheduler:
    """Ends as Snakemake's does."""

    def __init__(self) -> None:
        self.lock, self.ended = threading.Lock(), threading.Event()

    def exit_gracefully(self, *args: object) -> None:
        with self.lock:
            self.ended.set()


def test_a_run_that_is_told_to_end_does_not_wait_for_a_lock_that_it_holds() -> None:
    scheduler, before = Scheduler(), signal.getsignal(signal.SIGTERM)
    own = Internals(SimpleNamespace(scheduler=scheduler))
    try:
        signal.signal(signal.SIGTERM, scheduler.exit_gracefully)
        assert own.hear_sigterm_beside() and not own.hear_sigterm_beside()
        with scheduler.lock:
            signal.raise_signal(signal.SIGTERM)
            assert not scheduler.ended.is_set()
        assert scheduler.ended.wait(10)
    finally:
        signal.signal(signal.SIGTERM, before)


ASKED = """
import json, threading
from rankfall.run.snakemake.internals import Internals

OWN = Internals(workflow)
answers = {"module": OWN.is_module, "runs": OWN.runs_jobs, "dry": OWN.is_dry, "files": [Path(one).name for one in OWN.config_files]}
answers["values"] = OWN.config_values
OWN.give_jobs(Path("planned.json"))
answers["planned"] = [str(one) for one in workflow.config_settings.configfiles]

def ask(wildcards):
    if "forced" not in answers:
        answers["forced"] = OWN.read_forced()
        OWN.rerun_by_time_only()
        answers["before"] = OWN.forces({"old.txt"})
        OWN.force(["old.txt"])
        answers["after"] = OWN.forces({"old.txt"})
    return ["old.txt", "bad.txt"]

def keep():
    timers = [one.function.__module__ for one in threading.enumerate() if isinstance(one, threading.Timer)]
    answers["failed"] = {name: str(log) for name, log in OWN.find_failed_for_page().items()}
    Path("answers.json").write_text(json.dumps(answers | {"timers": timers}))

onstart: answers.update(jobs=sorted(OWN.local_jobs()), sigterm=[OWN.hear_sigterm_beside(), OWN.hear_sigterm_beside()]); OWN.wake_once()
onerror: keep()

rule page:
    input: ask
rule old:
    output: "old.txt"
    params: 2
    shell: "echo new > {output}"
rule bad:
    output: "bad.txt"
    log: "bad.log"
    shell: "exit 1"
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """What a run of Snakemake says, of which one job fails, and one is done because it is forced: its output is there."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "Snakefile").write_text("from pathlib import Path\n" + ASKED)
    (folder / "own.yaml").write_text("a: 1\n")
    (folder / "old.txt").write_text("old\n")
    words = [
        "-m",
        "snakemake",
        "-c1",
        "--configfile",
        "own.yaml",
        "--config",
        "two=2",
        "--forcerun",
        "bad",
        "--keep-going",
    ]
    done = subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, text=True, timeout=120)
    assert (folder / "answers.json").exists(), done.stderr
    return json.loads((folder / "answers.json").read_text()) | {"old": (folder / "old.txt").read_text()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("module", False),
        ("runs", True),
        ("dry", False),
        ("files", ["own.yaml"]),
        ("values", {"two": 2}),
        ("forced", [False, ["bad"]]),
        ("before", False),
        ("after", True),
        ("old", "new\n"),  # what is forced is made again
        ("jobs", ["bad", "old", "page"]),
        ("sigterm", [True, False]),
        ("failed", {"bad.txt": "bad.log"}),
    ],
)
def test_a_run_of_snakemake_has_what_is_asked_of_it(answers: dict[str, object], name: str, value: object) -> None:
    assert answers[name] == value


@pytest.mark.slow
def test_a_run_is_given_the_planned_file_and_has_a_timer_to_forget(answers: dict[str, object]) -> None:
    (planned,) = answers["planned"]  # type: ignore[misc]
    assert Path(planned).is_absolute() and Path(planned).name == "planned.json"
    assert answers["timers"] == [internals.__name__]  # one for two jobs
