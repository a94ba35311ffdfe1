"""Run the benchmark with Snakemake and show its progress: `make run` calls this."""

import argparse
import os
import re
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rankfall.run.screen.driver import Driver
    from rankfall.run.snakemake.estimates import InStore
    from rankfall.run.snakemake.run_plan import RunPlan

# Arguments with which Snakemake prints information and runs no jobs. Its output is shown unchanged.
TALKS = re.compile(
    r"-[a-zA-Z]*n[a-zA-Z]*|-[hvlSD]|--(dry-?run|unlock|touch|lint|dag|rulegraph|filegraph|d3dag|report|summary|detailed-summary"
    r"|archive|cleanup|delete|print|help|version|list|conda-create|conda-cleanup|containerize|draft-notebook|edit-notebook)\b.*"
)
ASKED = frozenset({"-h", "--help", "-v", "--version"})  # the ones that need no configuration

ARGUMENTS = """
--config FILE      the benchmark's config, YAML or JSON (default: config.yaml)
--profile FOLDER   folder of a Snakemake profile (default: workflow/profiles/default)
--retry            train failed cells again; useful if the machine, not the code, was the cause
[ARGUMENT...]      after `--`: for Snakemake
"""


def run(args: argparse.Namespace) -> int:
    from rankfall.project import check_folder, run_command
    from rankfall.run.screen import driver

    if any(TALKS.fullmatch(word) for word in args.argument):
        if not ASKED.intersection(args.argument):
            check_folder(Path.cwd())
            from rankfall.run.config.types import read

            read(args.config)  # reports an unreadable file; Snakemake would print a traceback
        command = driver.command(args.config, args.profile, args.argument)
        sys.stdout.flush()
        os.execv(command[0], command)
    from rankfall.caches import tidy
    from rankfall.commands.plan import count_cores, read_load
    from rankfall.run.config.types import read
    from rankfall.run.plan import make_plan
    from rankfall.run.screen.child import Child
    from rankfall.run.screen.state import RunState
    from rankfall.run.snakemake.estimates import InStore, estimates, slowdown
    from rankfall.run.snakemake.run_plan import PLAN, RunPlan

    began, load = time.time(), read_load()
    tidy()
    raw = read(args.config)
    plan = make_plan(raw)
    planned = RunPlan.make(plan, raw)
    store = InStore(plan, planned.results)
    if args.retry:
        forget_failed(planned, store)
    missing = planned.find_missing()
    if not missing and not args.argument:
        return publish_again(planned, args.config)
    check_folder(Path.cwd())
    planned.write()
    command = driver.command(planned.config, args.profile, [*args.argument, "--logger", "rankfall"])
    child = Child(command, {**os.environ, PLAN: str(planned.folder)})
    try:
        # Import and estimate while Snakemake starts.
        from rankfall.run.screen.watch import RunRecord

        again = run_command(args.config, args.profile, args.argument)
        costs = estimates(plan, missing, store)
        slower = slowdown(count_cores(), min(count_cores(), len(missing)), load)
        costs_by_path = {f"{planned.results}/{file}": cost for file, cost in costs.items()}
        state = RunState(began, costs=costs_by_path, slower=slower)
        record = RunRecord(planned.results, args.config, again, child.process.pid, state)
        snakemake = driver.Driver(child, state, plan.config.name, planned.results, record)
        code = snakemake.follow(sys.stdout.isatty())
        return finish(snakemake, code, args, again, time.time() - began)
    finally:
        child.close()


def forget_failed(planned: "RunPlan", store: "InStore") -> None:
    """Remove the work files of shards with failed cells, all files that depend on them, and the data sets of their tasks, since a task may
    be what failed. The next run computes only the failed cells again."""
    from rankfall.run.objects import find_objects

    objects = find_objects(planned.results)
    failed = [cell for cell in store.plan.cells if store.statuses.get(cell.key) == "failed"]
    shards = {f"train/{cell.task.name}/{cell.shard}" for cell in failed}
    data = [planned.job("data", task) for task in {cell.task.name for cell in failed}]
    for job in [*data, *planned.find_made_of(shards | {"table/datasets"} if failed else ())]:
        for file in job.files:
            (planned.results / file).unlink(missing_ok=True)
            if objects:
                objects.remove(planned.results / file)


def publish_again(planned: "RunPlan", config: Path) -> int:
    """Publish the work files, which all exist, without starting Snakemake."""
    from rankfall.commands.status import print_brief
    from rankfall.run.screen import ending
    from rankfall.run.snakemake.publish import publish

    print_lines(ending.say_nothing_to_do(planned.results, config, publish(planned)))
    print_lines(ending.say_where(planned.results))
    return print_brief(planned.results, config)


def finish(snakemake: "Driver", code: int, args: argparse.Namespace, again: str, seconds: float) -> int:
    """Print the last lines of a run and return its exit code."""
    from rankfall.commands.status import print_brief
    from rankfall.run.screen import child, ending
    from rankfall.run.screen.watch import read_record

    if snakemake.signals:
        name = child.name_in(snakemake.child.text())
        cancelled = child.cancel_left(name) if name else []
        if cancelled:
            print_lines(
                [f"==> cancelled {len(cancelled)} of its jobs that were still in the queue: {', '.join(cancelled)}"]
            )
        print_lines(ending.say_stopped(snakemake.state, again, seconds))
        return code
    if code and not snakemake.began:
        other = read_record(snakemake.results)
        print_lines(
            ending.say_refused(
                snakemake.state, snakemake.child.text(), other[0] if other else None, again, unlock_command(again)
            ),
            sys.stderr,
        )
        return code
    if code:
        print_lines(ending.say_failed(snakemake.state, snakemake.results, again, snakemake.log))
        print_brief(snakemake.results, args.config)
        return code
    print_lines(ending.say_finished(snakemake.state, snakemake.results, args.config, seconds))
    failed = print_brief(snakemake.results, args.config)
    if snakemake.began and not failed and ending.page_of(snakemake.results).is_file():
        print_lines(f"==> {finding}" for finding in read_findings(snakemake.results))
    print_lines(ending.say_where(snakemake.results))
    return failed


FINDINGS = 3  # findings that a run prints, so that its last lines are at most five


def read_findings(results: Path) -> list[str]:
    """Return the first questions of the run's page with their answers. A question names its setting if the run has several."""
    from rankfall.report import tables
    from rankfall.report.page.findings import choose_findings, findings

    def read(name: str) -> Any:
        path = results / "tables" / f"{name}.parquet"
        return tables.read_frame(path, name) if path.is_file() else None

    scores = read("scorecard")
    several = scores is not None and scores.setting.nunique() > 1
    return [
        f"{finding.question}{f' ({finding.setting})' * bool(several and finding.setting)} {finding.answer}"
        for finding in choose_findings(findings(read))[:FINDINGS]
    ]


def unlock_command(again: str) -> str:
    """Return the command that removes the lock of this run."""
    if again.startswith("make"):
        return f"{again.partition(' ARGS=')[0]} ARGS=--unlock"
    return f"{again.partition(' -- ')[0]} -- --unlock"


def print_lines(lines: Iterable[str], file: TextIO | None = None) -> None:
    """Print lines to a file, or to the terminal in its style."""
    from rankfall.run.screen.driver import print_line

    for line in lines:
        if file is None:
            print_line(line)
        else:
            print(line, file=file, flush=True)
