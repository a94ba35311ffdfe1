"""A logger plugin for Snakemake: it writes the events of a run as JSON, an object a line, and `rankfall run` shows them.

Snakemake finds it by its name if `--logger rankfall` is set and this folder's parent is on PYTHONPATH. Snakemake's usual messages are
written as well.
"""

import json
import os
from logging import LogRecord
from pathlib import Path
from typing import Any

from snakemake_interface_logger_plugins.base import LogHandlerBase

PLAN = "RANKFALL_PLAN"  # environment variable: the folder of the run's plan
FILE = "RANKFALL_EVENTS"  # environment variable: the file to append to
KEPT = (
    *("jobid", "job_id", "rule_name", "wildcards", "output", "log", "threads", "cores", "stats"),
    *("done", "total", "exception", "lacks", "no_page"),
)


def find_copies(names: Any) -> list[str]:
    """Return paths in the folder of results for names by Snakemake, which may be those of objects (`s3://... (send to storage)`)."""
    from rankfall.run.objects import find_objects

    objects = find_objects(Path(os.environ[PLAN]).parents[1])
    bare = [str(name).partition(" (")[0] for name in names]
    return [name.replace(objects.url, str(objects.folder), 1) for name in bare] if objects else list(map(str, names))


def last_error(logs: Any) -> str | None:
    """Return why a job ended, by its log; None if there is no log or no error in it."""
    try:
        from rankfall.run.objects import find_objects
        from rankfall.run.screen.logs import error_in

        if objects := find_objects(Path(os.environ[PLAN]).parents[1]):
            for log in logs or ():
                objects.fetch(Path(log))
        return next((error_in(Path(str(log))) for log in logs or () if Path(str(log)).is_file()), None)
    except Exception:  # an unreadable log must not end the run
        return None


class LogHandler(LogHandlerBase):
    """Write the events of a run."""

    writes_to_stream, writes_to_file, needs_rulegraph = False, False, False
    has_filter, has_formatter = True, True

    def __post_init__(self) -> None:
        path = os.environ.get(FILE)
        self.file = open(path, "a", buffering=1, encoding="utf-8") if path else None  # noqa: SIM115

    def emit(self, record: LogRecord) -> None:
        if self.file is None:
            return
        event = str(getattr(record, "event", None) or "text")
        fields = {name: getattr(record, name) for name in KEPT if getattr(record, name, None) is not None}
        fields |= {
            name: find_copies(fields[name]) for name in ("output", "log") if PLAN in os.environ and fields.get(name)
        }
        fields |= {"event": event, "time": record.created, "level": record.levelname}
        if event == "job_error":  # now: Snakemake deletes the log before it tries the job again
            fields["error"] = last_error(fields.get("log"))
        if event in ("text", "error"):
            fields["text"] = record.getMessage()
        try:
            self.file.write(json.dumps(fields, default=str) + "\n")
        except OSError:  # a full disk must not end a run
            self.file = None
