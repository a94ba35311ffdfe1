"""Guards that what is kept of a file's analysis is what reading the file again says, and that nothing else is ever taken for it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import config

import rankfall

pytestmark = pytest.mark.long

SAID = """
import ast, json, sys
from rankfall.run.keys import fingerprint
from rankfall.run.plan import make_plan
read, parse = [], ast.parse
ast.parse = lambda text, *more, **named: read.append(text) or parse(text, *more, **named)
sources = fingerprint.Sources()
named = ("analyses_lab", "rankfall", "rankfall.run.plan.build")
roots = "rankfall.train.recipe", "rankfall.rank.law.measure", "rankfall.position.probe.measure", "analyses_lab"
found = {name: sources.code_files([name]) for name in roots}
told = lambda one: [sorted(value) if isinstance(value, set) else value for value in vars(one).values()]
imports = {name: told(sources.source(name).imports) for name in named}
count = len(read)
make_plan(sys.argv[1])  # which keeps what was read
print(json.dumps([count, found, imports]))
"""
LAB = '''
"""A component's file with every form of import."""
import analyses_other as other, math
from analyses_other import *
from rankfall.nets.normalisers.softmax import softmax
__all__ = ["other", b"other", 1j, ...]
def late():
    return __import__("analyses_" + "other"), "\\udc80"
'''


class Lab:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "analyses_lab.py").write_text(LAB)
        (folder / "analyses_other.py").write_text("__all__ = ['x']\nx = 1\n")
        (folder / "config.json").write_text(json.dumps(config()))

    def found(self, cached: bool = True) -> tuple[int, object, object]:
        """How many files were read, their digests, and imports."""
        home = self.folder / "cache" if cached else self.folder / "file" / "no folder"
        (self.folder / "file").touch()
        environment = {"PYTHONPATH": f"{Path(rankfall.__file__).parents[1]}:{self.folder}", "XDG_CACHE_HOME": str(home)}
        done = subprocess.run(
            [sys.executable, "-c", SAID, "config.json"],
            env=environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=True,
        )
        count, digests, imports = json.loads(done.stdout)
        return count, digests, imports


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return Lab(tmp_path_factory.mktemp("analyses"))


def test_the_next_process_reads_no_tree_and_says_the_same(lab: Lab) -> None:
    apart = lab.found(cached=False)
    first, second = lab.found(), lab.found()
    assert apart == first and first[0] > 50
    assert second == (0, *first[1:])


def test_an_edit_is_read(lab: Lab) -> None:
    before = lab.found()
    (lab.folder / "analyses_other.py").write_text("__all__ = ['x']\nx = 2\n")
    after = lab.found()
    assert after[0] == 1 and after[1] != before[1]
    (lab.folder / "analyses_other.py").write_text("__all__ = ['x']\nx = 1\n")
    assert lab.found() == (0, *before[1:])  # as it was, and still known
