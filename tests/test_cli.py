"""Guards what the command line calls itself, and that it imports nothing that a number depends on before it can tell from which text."""

import subprocess
import sys

import pytest
from plans import VALID

from rankfall import cli
from rankfall.plan import make_plan
from rankfall.schedule.statements import Statements


@pytest.mark.parametrize("words", [["measure", "model"], ["model"], ["compare"]])
def test_help_names_the_command_that_was_typed(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main([*words, "--help"])
    assert capsys.readouterr().out.startswith(f"usage: rankfall {' '.join(words)} ")


def test_no_number_depends_on_what_is_imported_before_the_loader_is_installed() -> None:
    """A job whose key has such a file ends with an error: nobody can say which text of it runs."""
    listed = "import sys, rankfall.cli; print(*(n for n in sys.modules if n.startswith('rankfall.')))"
    names = subprocess.run([sys.executable, "-c", listed], capture_output=True, text=True, check=True).stdout.split()
    statements = Statements(make_plan(VALID))
    plan = statements.plan
    made = [*map(statements.table, statements.tables), *map(statements.figure, plan.figures), statements.page()]
    codes = [
        *(one.files() for one in made),
        *(cell.code for cell in plan.cells),
        *(m.code for m in plan.measures.values()),
    ]
    files = {name for code in codes for name in code}
    assert "rankfall/report/tables.py" in files and "rankfall.cli" in names
    assert not [name for name in names if f"{name.replace('.', '/')}.py" in files]
