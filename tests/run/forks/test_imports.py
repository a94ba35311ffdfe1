"""Guards what jobs import: heavy libraries only where numbers need them, whether or not a server has imported them before."""

import subprocess
import sys

import pytest

from rankfall.run.forks import server

FIGURE = """
import sys
import rankfall.run.guards, rankfall.commands.figure, rankfall.report.style, rankfall.report.tables
from rankfall import components
for name in components.names("figure"):
    components.load("figure", name)
"""
TABLE = """
import sys
import rankfall.commands.table, rankfall.run.plan, rankfall.run.snakemake.jobs, rankfall.report.tables, rankfall.report.runs
"""
MEASURE = """
import sys
import rankfall.commands.measure, rankfall.run.jobs.measuring
from rankfall import components
for name in components.names("measure"):
    components.load("measure", name)
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("program", "heavy"),
    [
        (FIGURE, {"torch", "transformers", "snakemake"}),
        (TABLE, {"torch", "transformers", "snakemake", "matplotlib", "seaborn"}),
        (MEASURE, {"transformers", "tokenizers", "matplotlib", "seaborn", "snakemake", "numba"}),
    ],
    ids=["figures", "tables", "measures"],
)
def test_a_job_imports_what_its_numbers_need(program: str, heavy: set[str]) -> None:
    """Of measures of models, what they import when they are called is another matter."""
    said = f"{program}\nprint(*sorted({heavy!r} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True).stdout.split()
    assert found == []


@pytest.mark.parametrize("whole", [True, False])
def test_machine_code_is_read_ahead_and_never_compiled_there(monkeypatch: pytest.MonkeyPatch, whole: bool) -> None:
    """Each job had read it, for a second or two of a processor; a server that compiles would start no job for half a minute."""
    pytest.importorskip("numba")
    from thousandfold import cache, runtime

    called: list[bool] = []
    monkeypatch.setattr(cache, "is_whole", lambda folder: whole)
    monkeypatch.setattr(runtime, "prepare", lambda dtype: called.append(True))
    server.read_kernels()
    assert called == [True] * whole
