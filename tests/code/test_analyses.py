"""Guards that what is kept of a file's analysis is what reading the file again says, and that nothing else is ever taken for it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import rankfall

SAID = """
import ast, json
from rankfall.code import loader
loader.install()
from rankfall.code import analyses, fingerprint
read, parse = [], ast.parse
ast.parse = lambda text, *more, **named: read.append(text) or parse(text, *more, **named)
sources = fingerprint.Sources()
found = {name: sources.code_files([name]) for name in ("rankfall.train.recipe", "rankfall.jobs.measuring", "analyses_lab")}
told = lambda one: [sorted(value) if isinstance(value, set) else value for value in vars(one).values()]
imports = {name: told(sources.source(name).imports) for name in ("analyses_lab", "rankfall", "rankfall.plan.build")}
analyses.keep()
print(json.dumps([len(read), found, imports]))
"""
LAB = '''
"""A component's file with every form of import."""
import analyses_other as other, math
from analyses_other import *
from rankfall.nets.normalisers.softmax import softmax
__all__ = ["other"]
def late():
    return __import__("analyses_" + "other"), "\\udc80"
'''


class Lab:
    def __init__(self, folder: Path) -> None:
        self.folder, self.cache = folder, folder / "cache" / "rankfall" / "analyses"
        (folder / "analyses_lab.py").write_text(LAB)
        (folder / "analyses_other.py").write_text("__all__ = ['x']\nx = 1\n")

    def found(self, cached: bool = True) -> tuple[int, object, object]:
        """How many files were read, their digests, and imports."""
        home = self.folder / "cache" if cached else self.folder / "file" / "no folder"
        (self.folder / "file").touch()
        environment = {"PYTHONPATH": f"{Path(rankfall.__file__).parents[1]}:{self.folder}", "XDG_CACHE_HOME": str(home)}
        done = subprocess.run([sys.executable, "-c", SAID], env=environment, capture_output=True, text=True, check=True)
        count, digests, imports = json.loads(done.stdout)
        return count, digests, imports

    @property
    def file(self) -> Path:
        (file,) = self.cache.iterdir()
        return file


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


@pytest.mark.parametrize("harm", ["cut", "changed", "not text", "a folder"])
def test_a_cache_file_that_is_not_whole_counts_as_none(lab: Lab, harm: str) -> None:
    """Nothing of it is used: not one digest, though it still reads as JSON."""
    right, content = lab.found(), lab.file.read_text()
    place = content.index('["') + 2  # of the first file's digest
    if harm == "cut":
        lab.file.write_text(content[: len(content) // 2])
    elif harm == "changed":
        lab.file.write_text(content[:place] + ("0" if content[place] != "0" else "1") + content[place + 1 :])
    elif harm == "not text":
        lab.file.write_bytes(b"\xff\xfe")
    else:
        path = lab.file
        path.unlink()
        path.mkdir()
    assert lab.found()[1:] == right[1:]
    if lab.file.is_dir():
        lab.file.rmdir()
    assert lab.found()[1:] == right[1:] and lab.found()[0] == 0


def test_what_other_code_has_analysed_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from rankfall.code import analyses

    texts = dict.fromkeys(analyses.ANALYSES, b"text")
    monkeypatch.setattr(analyses, "executed", texts.get)
    path = analyses._path.__wrapped__
    names = [path()]
    for name in analyses.ANALYSES:
        monkeypatch.setitem(texts, name, b"edited")
        names.append(path())
    monkeypatch.setattr(analyses.sys, "version_info", (3, 99, 0))
    names.append(path())
    assert len({*names}) == len(names) and None not in names
    monkeypatch.delitem(texts, analyses.ANALYSES[0])
    assert path() is None
