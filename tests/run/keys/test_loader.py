"""Guards that what runs is the source text: never a compiled file that happens to have its size and time, and in a job what was planned."""

import importlib
import json
import os
import py_compile
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from helpers import config

from rankfall.run.keys import loader
from rankfall.run.keys.fingerprint import Sources

OLD, NEW = "VALUE = 1\n", "VALUE = 2\n"


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.startswith("loaded_")]:
        monkeypatch.delitem(sys.modules, name)
    return tmp_path


def edit_unnoticed(file: Path, old: str, new: str) -> None:
    """Compiled with the old text, edited to the same size, given the old time: `touch -r`, or two checkouts within a second."""
    assert len(old) == len(new)
    file.write_text(old)
    py_compile.compile(str(file), doraise=True)
    stat = file.stat()
    file.write_text(new)
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))


@pytest.mark.parametrize("name", ["loaded_one", "loaded_folder.one", "loaded_package.one", "loaded_package"])
def test_a_compiled_file_of_another_text_is_not_run(lab: Path, name: str) -> None:
    for folder in ("loaded_folder", "loaded_package"):
        (lab / folder).mkdir()
    (lab / "loaded_package" / "__init__.py").write_text("")
    file = lab / (f"{name.replace('.', '/')}.py" if name != "loaded_package" else "loaded_package/__init__.py")
    edit_unnoticed(file, OLD, NEW)
    plain = [sys.executable, "-c", f"from {name} import VALUE; print(VALUE)"]
    assert (
        subprocess.check_output(plain, env={**os.environ, "PYTHONPATH": str(lab)}) == b"1\n"
    )  # Python itself is fooled
    assert importlib.import_module(name).VALUE == 2
    assert loader.read_executed_text(name) == NEW.encode()


def test_nothing_is_compiled_into_a_file(lab: Path) -> None:
    (lab / "loaded_two.py").write_text(OLD)
    importlib.import_module("loaded_two")
    assert not (lab / "__pycache__").exists()


def test_what_is_installed_is_left_to_python(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = lab / "site-packages"
    (installed / "loaded_pack").mkdir(parents=True)
    (installed / "loaded_pack" / "__init__.py").write_text("from loaded_pack.inner import VALUE")
    (installed / "loaded_pack" / "inner.py").write_text(OLD)
    monkeypatch.syspath_prepend(installed)
    importlib.import_module("loaded_pack")
    assert not isinstance(sys.modules["loaded_pack"].__spec__.loader, loader.TextLoader)  # type: ignore[union-attr]
    assert loader.read_executed_text("loaded_pack.inner") is None
    assert loader.read_executed_text("json") is None


def frozen_texts(*roots: str) -> Mapping[str, loader.Text]:
    sources = Sources()
    sources.code_files(roots)
    return sources.texts


def test_frozen_modules_are_what_was_read(lab: Path) -> None:
    """Edited, deleted, or hidden by another file of that name; a package, and one of its modules."""
    (lab / "loaded_package").mkdir()
    for name in ("__init__", "inner", "late"):
        (lab / "loaded_package" / f"{name}.py").write_text(OLD)
    (lab / "loaded_package" / "__init__.py").write_text(
        "def get():\n    from loaded_package import late\n    return late"
    )
    (lab / "loaded_root.py").write_text("import loaded_package.inner")
    texts = frozen_texts("loaded_root")
    assert {"loaded_root", "loaded_package", "loaded_package.inner", "loaded_package.late"} <= texts.keys()
    with loader.frozen(texts):
        (lab / "loaded_package" / "inner.py").unlink()
        (lab / "loaded_package" / "late.py").write_text(NEW)
        (lab / "shadow").mkdir()
        (lab / "shadow" / "loaded_root.py").write_text("raise SystemError")
        sys.path.insert(0, str(lab / "shadow"))
        try:
            importlib.import_module("loaded_root")
        finally:
            sys.path.remove(str(lab / "shadow"))
        package = sys.modules["loaded_package"]
        assert package.inner.VALUE == package.get().VALUE == 1
        assert Sources().source("loaded_package.late").text == texts["loaded_package.late"]  # type: ignore[union-attr]
        assert Path(package.__file__ or "") == lab / "loaded_package" / "__init__.py"
    del sys.modules["loaded_package.late"]
    assert importlib.import_module("loaded_package.late").VALUE == 2  # the job is over


def test_installing_again_changes_nothing() -> None:
    before = list(sys.meta_path)
    assert loader.install() is loader.install() is before[0]
    assert sys.meta_path == before


@pytest.mark.long
@pytest.mark.parametrize(
    "verb",
    [
        ["-m", "rankfall.cli"],
        pytest.param(["-c", "import sys; from rankfall.cli import main; sys.exit(main())"], marks=pytest.mark.slow),
    ],
)
def test_a_job_trains_with_the_text(lab: Path, verb: list[str]) -> None:
    """The whole program, started as workflows and as a shell start it, over a stale compiled normaliser."""
    text = "def sharp(logits):\n    return (2 * logits).softmax(-1)\n"
    raw = config(architecture={"normaliser": "loaded_sharp:sharp", "depth": 1})
    (lab / "config.json").write_text(json.dumps(raw))
    found = []
    for results in ("clean", "stale"):
        if results == "clean":
            (lab / "loaded_sharp.py").write_text(text.replace("2", "8"))
        else:
            edit_unnoticed(lab / "loaded_sharp.py", text, text.replace("2", "8"))
        command = ["train", "--config", "config.json", "--results", results, "--task", "sorting", "--shard", "0"]
        path = os.pathsep.join([str(lab), os.environ.get("PYTHONPATH", "")])
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        subprocess.run(
            [sys.executable, *verb, *command, "--out", f"{results}.parquet"],
            env={**environment, "PYTHONPATH": path},
            check=True,
        )
        from rankfall.report import tables

        (row,) = tables.read(lab / f"{results}.parquet", "cells").select(["key", "test_loss"]).to_pylist()
        found.append(row)
    assert found[0] == found[1]
