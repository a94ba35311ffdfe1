"""A written plan: the configuration and the data that jobs need, in a folder named by its digest.

    results/plan/0123456789abcdef01234567/
        config.json                 the whole configuration
        jobs.json                   the jobs: inputs, outputs and resources of each (`run/snakemake/run_plan.py`)
        shards/TASK/SHARD.json      the cells of a shard, as a slice (`slices.py`)
        data/TASK.json              one cell for each data set of a task

A job reads its part, plans this part again and compares the digest with the one in the names of its files (`commands/_planned.py`). If a
file is missing or damaged, the job plans the whole grid. This takes longer and changes no result.
"""

import json
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from rankfall.disk import atomic
from rankfall.errors import RankfallError
from rankfall.run.plan.slices import Slice

FOLDER, CONFIG, JOBS = "plan", "config.json", "jobs.json"


class DamagedPlan(RankfallError):
    """A file of a written plan is missing or damaged."""


@dataclass(frozen=True)
class WrittenPlan:
    """A plan in its folder."""

    folder: Path

    @classmethod
    def load_beside(cls, config: Path) -> "WrittenPlan | None":
        """Return the plan to which a configuration file belongs, or None if the file is not part of a plan."""
        found = cls(config.parent)
        return found if config.name == CONFIG and found.jobs_file.is_file() else None

    @property
    def config(self) -> Path:
        return self.folder / CONFIG

    @property
    def jobs_file(self) -> Path:
        return self.folder / JOBS

    def shard_file(self, task: str, shard: str) -> Path:
        return self.folder / "shards" / task / f"{shard}.json"

    def data_file(self, task: str) -> Path:
        return self.folder / "data" / f"{task}.json"

    @cached_property
    def about(self) -> dict[str, Any]:
        """Return the content of jobs.json."""
        return read_json(self.jobs_file)

    def shard(self, task: str, shard: str) -> Slice:
        return Slice(**read_json(self.shard_file(task, shard)))

    def data(self, task: str) -> Slice:
        return Slice(**read_json(self.data_file(task)))

    @property
    def sample(self) -> Slice:
        """Return cells that together use all code of the plan."""
        return Slice(self.about["sample"])


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DamagedPlan(f"{path} cannot be read: {error}") from error


def write_once(path: Path, content: bytes) -> None:
    """Write a file unless it already has this content. Another process may be reading it."""
    try:
        if path.read_bytes() == content:
            return
    except OSError:
        pass
    with atomic(path) as file:
        file.write(content)


def mark_used(folder: Path) -> None:
    """Set the modification time of a plan's folder to now. `rankfall gc` reads it as the time of the last use."""
    os.utime(folder)
