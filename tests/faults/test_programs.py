"""A program that a server forks for is like one that Python itself starts: or the campaign would test something else."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from programs import Starter

SAYS = """
import os, sys
print(sys.argv[1:], os.getcwd(), os.environ.get("LIKE"), sys.path[0], sys.dont_write_bytecode, __name__, sys.stdin.read())
"""
SHELL = """
import subprocess, sys
sys.exit(subprocess.run(["bash", "-c", " ".join(sys.argv[1:])], env=None).returncode)
"""


@pytest.fixture(scope="module")
def starter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Starter]:
    made = Starter(tmp_path_factory.mktemp("programs"), libraries=())
    yield made
    made.close()


@pytest.fixture
def environment(starter: Starter, tmp_path: Path) -> dict[str, str]:
    """Where `python` is the one that asks for a fork, as it is beneath Snakemake."""
    (tmp_path / "says.py").write_text(SAYS)
    (tmp_path / "shell.py").write_text(SHELL)
    return {"PATH": os.pathsep.join([str(starter.python.parent), os.environ["PATH"]]), "LIKE": "that"}


def test_it_says_what_python_says(starter: Starter, environment: dict[str, str], tmp_path: Path) -> None:
    ours = starter.start("says", "a", "b c", cwd=tmp_path, environment=environment)
    assert ours.end(30) == 0
    command = [sys.executable, "-m", "says", "a", "b c"]
    wanted = subprocess.run(
        command, cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert ours.text() == wanted.stdout
    nested = starter.start("shell", "exec python -m says a 'b c' </dev/null", cwd=tmp_path, environment=environment)
    assert nested.end(30) == 0
    assert nested.text() == wanted.stdout


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("import sys; sys.exit(3)", 3),
        ("import sys; sys.exit('no')", 1),
        ("1 / 0", 1),
        ("import os; os._exit(7)", 7),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM),
    ],
)
def test_it_ends_as_it_would(
    starter: Starter, environment: dict[str, str], tmp_path: Path, text: str, code: int
) -> None:
    (tmp_path / "ends.py").write_text(text)
    program = starter.start("ends", cwd=tmp_path, environment=environment)
    assert program.end(30) == code
    assert ("ZeroDivisionError" in program.text()) == ("/ 0" in text)
    nested = starter.start("shell", "python -m ends; echo status $?", cwd=tmp_path, environment=environment)
    assert nested.end(30) == 0
    assert f"status {code if code >= 0 else 128 - code}" in nested.text()


def test_modules_are_read_anew(starter: Starter, environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "says.py").write_text("import other; print(other.VALUE)")
    for value in ("one", "three"):
        (tmp_path / "other.py").write_text(f"VALUE = {value!r}")
        program = starter.start("says", cwd=tmp_path, environment=environment)
        assert program.end(30) == 0
        assert program.text() == f"{value}\n"


def test_a_kill_ends_all_that_it_started(starter: Starter, environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "counts.py").write_text(
        "import os, time\nwhile True:\n    open(str(os.getpid()), 'a').write('.')\n    time.sleep(0.01)"
    )
    program = starter.start("shell", "python -m counts & exec python -m counts", cwd=tmp_path, environment=environment)
    limit = time.monotonic() + 30
    while len(found := list(tmp_path.glob("[0-9]*"))) < 2:
        assert time.monotonic() < limit
        time.sleep(0.01)
    assert program.wait(0) is None
    program.kill()
    assert program.code == -signal.SIGKILL
    for path in found:
        with pytest.raises(ProcessLookupError):
            os.kill(int(path.name), 0)
