"""Guards what jobs import: heavy libraries only where numbers need them, whether or not a server has imported them before."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import config

from rankfall.run.forks import server

FIGURE = """
import sys
import rankfall.run.guards.unchanged, rankfall.commands.figure, rankfall.report.style, rankfall.report.tables
from rankfall import components
for name in components.names("figure"):
    components.load("figure", name)
"""
TABLE = """
import sys
import rankfall.commands.table, rankfall.run.plan, rankfall.run.snakemake.jobs, rankfall.report.tables, rankfall.report.compare
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
        (FIGURE, {"torch", "transformers", "snakemake", "altair"}),
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
    from rankfall.train.machine import cache, runtime

    called: list[bool] = []
    monkeypatch.setattr(cache, "is_whole", lambda folder: whole)
    monkeypatch.setattr(runtime, "prepare", lambda dtype: called.append(True))
    server.read_kernels()
    assert called == [True] * whole


def test_only_what_some_job_needs_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request waits for the import of the moment, of models two seconds."""
    path = tmp_path / "config.json"
    measures = {"chains": {"measure": "chains", "model": "bert"}, "law": {"measure": "law"}}
    path.write_text(json.dumps(config(measures=measures)))
    named: list[str] = []
    monkeypatch.setattr(server, "make_importer", lambda name: lambda: named.append(name))

    def imported(*jobs: str) -> set[str]:
        named.clear()
        for piece in server.pieces(str(path), frozenset(jobs)):
            piece()
        return {*named}

    assert imported("measure law", "table") == {*server.NUMERICS}
    assert imported("measure law", "figure") == imported("page") == {*server.NUMERICS, *server.FIGURES}
    assert imported("measure law", "measure chains") == {*server.NUMERICS, *server.MODELS}
