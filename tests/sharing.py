"""How several processes share the slow tests: by file, the files of SLURM together, and first what takes longest.

A file is one piece of work, since its tests share what they prepare. There is one SLURM on a machine, so all tests of it
are one piece. A long piece that begins last leaves the other processes with nothing to do.
"""

from collections.abc import Iterable
from typing import Any

TOGETHER = "tests/slurm/"
LONG = (
    TOGETHER,
    "tests/faults/",
    "tests/workflow/",
    "tests/train/",
    "tests/docs/",
    "tests/benchmarks/",
)


def piece(test: str) -> str:
    """What a test is run together with, by one process."""
    return TOGETHER if test.startswith(TOGETHER) else test.partition("::")[0]


def place(test: str) -> int:
    """Tests of lower places begin earlier; within a place they keep their order."""
    return next((number for number, long in enumerate(LONG) if test.startswith(long)), len(LONG))


def longest_first(items: Iterable[Any]) -> list[Any]:
    return sorted(items, key=lambda item: place(item.nodeid))


def scheduler(config: Any, log: Any) -> Any:
    """For `--dist loadfile`; xdist's own would begin with the files of most tests."""
    from xdist.scheduler import LoadFileScheduling

    class Pieces(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return piece(nodeid)

    config.option.loadscopereorder = False
    return Pieces(config, log)
