"""The paths of each job's files under the folder of results, for rules, commands and comparisons.

Snakemake names files by text, so the folder is written as it would write it: `./results/` is `results`.
"""

import os
from dataclasses import dataclass

from rankfall.run.snakemake.lookups import ShardJob


@dataclass(frozen=True)
class Outputs:
    """Paths under one folder of results."""

    folder: str

    @classmethod
    def under(cls, results: str | os.PathLike[str]) -> "Outputs":
        return cls(os.path.normpath(results))

    def data(self, task: str) -> str:
        return f"{self.folder}/shards/data/{task}.parquet"

    def cells(self, task: str, shard: str) -> str:
        return f"{self.folder}/shards/train/{task}/{shard}.cells.parquet"

    def training(self, task: str, shard: str) -> str:
        return f"{self.folder}/shards/train/{task}/{shard}.training.parquet"

    def measure_shard(self, measure: str, task: str, shard: str) -> str:
        return f"{self.folder}/shards/measure/{measure}/{task}/{shard}.parquet"

    def of(self, job: ShardJob) -> list[str]:
        """The files that a job of a shard makes."""
        if job.measure:
            return [self.measure_shard(job.measure, *job.place)]
        return [self.cells(*job.place), self.training(*job.place)]

    def freely(self, measure: str) -> str:
        """The file of a measure that needs no trained cells."""
        return f"{self.folder}/shards/measure/{measure}.parquet"

    @property
    def page(self) -> str:
        return f"{self.folder}/report/index.html"

    def table(self, name: str) -> str:
        return f"{self.folder}/tables/{name}.parquet"

    def picture(self, figure: str) -> str:
        return f"{self.folder}/figures/{figure}.png"

    def caption(self, figure: str) -> str:
        return f"{self.folder}/figures/{figure}.rst"
