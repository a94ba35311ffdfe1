"""Guards that two runs do not work on one folder of results: the second is refused in one line, unless the first is dead."""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rankfall.errors import RankfallError
from rankfall.run.snakemake import claim as module
from rankfall.run.snakemake.claim import claim, file_of

HOLD = (
    "import sys, time; from pathlib import Path; from rankfall.run.snakemake.claim import claim; "
    "claim(Path(sys.argv[1])); print(1, flush=True)"
)


def held(results: Path, then: str) -> "subprocess.Popen[str]":
    """Another process that has the results."""
    words = [sys.executable, "-c", f"{HOLD}; {then}", str(results)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "1\n"
    return process


def test_the_second_is_refused_until_the_first_has_ended(tmp_path: Path) -> None:
    first = held(tmp_path, "sys.stdin.read()")
    with pytest.raises(RankfallError) as caught:
        claim(tmp_path)
    said = str(caught.value)
    assert f"another run works on {tmp_path} (process {first.pid} on " in said and "\n" not in said
    first.communicate("")
    assert list(file_of(tmp_path).parent.iterdir()) == [], "the lock goes with the process"
    claim(tmp_path)
    claim(tmp_path)  # the same process may begin again
    file_of(tmp_path).unlink()


def test_what_was_killed_or_damaged_is_taken_over(tmp_path: Path) -> None:
    first = held(tmp_path, "sys.stdin.read()")
    first.kill()
    first.communicate()
    for text in (file_of(tmp_path).read_text(), "", "{", "[]"):
        file_of(tmp_path).write_text(text)
        claim(tmp_path)
        assert json.loads(file_of(tmp_path).read_text())["pid"] == os.getpid()
    file_of(tmp_path).unlink()


@pytest.mark.parametrize("silent", [10, 10 * module.DEAD])
def test_another_machine_is_believed_while_it_shows_life(tmp_path: Path, silent: float) -> None:
    path = file_of(tmp_path)
    path.parent.mkdir()
    path.write_text(json.dumps({"pid": 1, "host": f"not-{socket.gethostname()}", "folder": "/x"}))
    os.utime(path, (time.time() - silent,) * 2)
    if silent < module.DEAD:
        with pytest.raises(RankfallError, match="started in /x"):
            claim(tmp_path)
    else:
        claim(tmp_path)
        assert json.loads(path.read_text())["pid"] == os.getpid()
        path.unlink()


def test_of_many_at_once_one_has_it(tmp_path: Path) -> None:
    words = [sys.executable, "-c", f"{HOLD}; time.sleep(1)", str(tmp_path)]
    many = [subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    said = [process.communicate()[0] for process in many]
    assert said.count("1\n") >= 1  # one after another, where a machine is slow
    codes = sorted(bool(process.returncode) for process in many)
    assert codes.count(False) == said.count("1\n")
