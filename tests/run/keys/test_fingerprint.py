"""Guards the import closure: every way to import is followed, what does not run is left out, what cannot be followed is an error."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import rankfall
from rankfall.errors import RankfallError
from rankfall.run.plan.cells import TRAIN_ROOTS
from rankfall.sources import fingerprint
from rankfall.sources.fingerprint import Sources

Write = Callable[..., None]
PACKAGE = {
    "__init__": "",
    "root": "",
    "leaf": "value = 1",
    "other": "",
    "sub.__init__": "",
    "sub.leaf": "value = 1",
    "sub.deep.__init__": "",
    "sub.deep.leaf": "value = 1",
}


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Write:
    """Writes modules of a package `pkg` that lies on the path."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(**modules: str) -> None:
        for module, text in modules.items():
            path = tmp_path.joinpath(
                "pkg", *module.replace("__init__", "@").replace("__", ".").replace("@", "__init__").split(".")
            )
            path.parent.mkdir(parents=True, exist_ok=True)
            path.with_suffix(".py").write_text(text)

    for module, text in PACKAGE.items():
        write(**{module: text})
    return write


def files(root: str = "pkg.root") -> set[str]:
    return {file.removeprefix("pkg/").removesuffix(".py") for file in Sources().code_files([root])}


ALWAYS = {"__init__", "root"}
SUB = {"sub/__init__"}
DEEP = SUB | {"sub/deep/__init__"}
FORMS = {
    "import pkg.sub.deep.leaf": DEEP | {"sub/deep/leaf"},
    "import os, pkg.leaf, json": {"leaf"},
    "from pkg import leaf as short, other": {"leaf", "other"},
    "from pkg.leaf import value": {"leaf"},
    "from pkg.sub import deep": DEEP,
    "from .sub.deep.leaf import value": DEEP | {"sub/deep/leaf"},
    "from .leaf import *": {"leaf"},
    "def late():\n    from pkg import leaf": {"leaf"},
    "try:\n    import pkg.leaf\nexcept ImportError:\n    import pkg.other": {"leaf", "other"},
    "from pkg import sub\nprint(sub.deep.leaf.value)": DEEP | {"sub/deep/leaf"},
    "import importlib\nimportlib.import_module('pkg.leaf')": {"leaf"},
    "from importlib import import_module as load\nload('pkg.leaf')": {"leaf"},
    "import json.decoder, os.path, numpy": set(),
    "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from pkg import leaf": set(),
    "import typing\nif typing.TYPE_CHECKING:\n    import pkg.leaf\nelse:\n    import pkg.other": {"other"},
    "from pkg.other import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pkg.leaf": {"other", "leaf"},
}


@pytest.mark.parametrize("text", FORMS)
def test_import_is_followed(write: Write, text: str) -> None:
    write(root=text)
    assert files() == ALWAYS | FORMS[text]


def test_same_files_as_running_it(write: Write, tmp_path: Path) -> None:
    """The analysis against Python itself, over all forms that can run together."""
    runnable = [text for text in FORMS if "TYPE" not in text and "def late" not in text]
    for text in runnable:
        write(root=text)
        program = "import pkg.root, sys; print(*sorted(m for m in sys.modules if m.split('.')[0] == 'pkg'))"
        environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
        )
        ran = {m.removeprefix("pkg").removeprefix(".").replace(".", "/") or "__init__" for m in done.stdout.split()}
        found = {file.removesuffix("/__init__") for file in files()}
        if done.returncode == 0:
            assert ran <= found, text


def digest(root: str = "pkg.root") -> str:
    return Sources().fingerprint([root])


PLAIN = "from typing import TYPE_CHECKING\ndef f(x):\n    return x + 1"
SAME = {
    "comment": PLAIN.replace("def f", "# a remark\ndef f") + "  # more",
    "docstrings": '"""Module."""\n' + PLAIN.replace("    return", '    """Function."""\n    return'),
    "layout": PLAIN.replace("x + 1", "(\n x\n  +1)"),
    "version": f"{PLAIN}\n__version__ = '9'",
    "type checking": f"{PLAIN}\nif TYPE_CHECKING:\n    import pkg.leaf",
}


@pytest.mark.parametrize("name", SAME)
def test_what_does_not_run_does_not_count(write: Write, name: str) -> None:
    write(root=PLAIN)
    before = digest()
    assert SAME[name] != PLAIN
    write(root=SAME[name])
    assert digest() == before


@pytest.mark.parametrize(
    "text", ["def f(x):\n    return x + 2", "def g(x):\n    return x + 1", "def f(x, y=None):\n    return x + 1"]
)
def test_what_runs_counts(write: Write, text: str) -> None:
    write(root="def f(x):\n    return x + 1")
    before = digest()
    write(root=text)
    assert digest() != before


def test_edit_counts_wherever_it_is_imported_and_nowhere_else(write: Write) -> None:
    write(root="from pkg import leaf")
    before, aside = digest(), digest("pkg.other")
    write(leaf="value = 2")
    assert digest() != before
    assert digest("pkg.other") == aside
    write(leaf="value = 1")
    assert digest() == before


DYNAMIC = [
    "import importlib\nimportlib.import_module(name)",
    "from importlib import import_module\nimport_module(f'pkg.{name}')",
    "__import__(name)",
    "exec(text)",
    "import runpy\nrunpy.run_path(path)",
]


@pytest.mark.parametrize("text", DYNAMIC)
def test_import_that_cannot_be_followed_is_an_error_in_our_package(
    write: Write, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fingerprint, "OURS", ("pkg",))
    write(root=f"import os\n\n{text}")
    line = 3 + text.count("\n")
    with pytest.raises(
        RankfallError, match=rf"^pkg/root\.py, line {line}: `.*` runs code that the fingerprint cannot follow"
    ):
        Sources().code_files(["pkg.root"])


@pytest.mark.parametrize("text", DYNAMIC)
def test_import_that_cannot_be_followed_makes_all_of_a_foreign_package_count(write: Write, text: str) -> None:
    write(root=text)
    assert files() == {name.replace(".", "/") for name in PACKAGE}


@pytest.mark.parametrize("importer", ["rankfall", "working directory"])
def test_helper_outside_the_package_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Write, importer: str
) -> None:
    """A component imports a helper beside the Snakefile, wherever the component itself lies."""
    beside = tmp_path / "beside"
    beside.mkdir()
    if importer == "working directory":
        monkeypatch.chdir(beside)  # the last place that is looked into, on no path
    else:
        monkeypatch.syspath_prepend(beside)
    (beside / "helper.py").write_text("from helped import SCALE")
    (beside / "helped.py").write_text("SCALE = 1")
    if importer == "rankfall":
        monkeypatch.setattr(fingerprint, "OURS", ("pkg",))
    write(root="import json, numpy, notinstalled\nfrom helper import SCALE")
    before = Sources()
    assert {"helper.py", "helped.py", "pkg/root.py"} <= set(before.code_files(["pkg.root"]))
    (beside / "helped.py").write_text("SCALE = 2")
    assert digest() != before.fingerprint(["pkg.root"])


def numerics() -> dict[str, str]:
    return Sources().code_files(TRAIN_ROOTS)


def test_numerics_leave_the_machinery_out() -> None:
    """An edit of the store, the plan, the command line or the progress bar must make no cell stale."""
    parts = {Path(file).parts[1] for file in numerics()}
    assert parts <= {"__init__.py", "design.py", "random_streams.py", "nets", "tasks", "train"}
    assert not {"rankfall/run/jobs/training.py", "rankfall/train/progress.py"} & set(numerics())


@pytest.mark.long
def test_numerics_hold_what_training_imports() -> None:
    """Compare with Python itself: what of ours is loaded after importing the trainer, without the loader of components and its caches."""
    program = f"import {', '.join(TRAIN_ROOTS)}, sys; print(*(m.__file__ for n, m in sys.modules.items() if n.split('.')[0] == 'rankfall'))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    root = Path(rankfall.__file__).parents[1]
    loaded = {Path(file).relative_to(root).as_posix() for file in done.stdout.split()}
    loader = {"components", "quantity_files", "modules", "descriptions", "caches", "disk", "errors"}
    assert loaded - set(numerics()) <= {f"rankfall/{name}.py" for name in loader}


def test_the_text_of_an_installed_engine_is_in_the_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site-packages"
    engine = Path(rankfall.__file__).parents[2] / "engine" / "src" / "thousandfold"
    shutil.copytree(engine, site / "thousandfold", ignore=shutil.ignore_patterns("__pycache__"))
    here = Sources().code_files(["rankfall.train.machine.engine"])
    monkeypatch.syspath_prepend(site)
    monkeypatch.setitem(sys.modules, "thousandfold", None)  # type: ignore[arg-type]  # Python's finder prefers what is imported
    monkeypatch.delitem(sys.modules, "thousandfold")
    there = Sources().code_files(["rankfall.train.machine.engine"])
    assert there == here
    assert {"thousandfold/engine.py", "thousandfold/kernels/products.py", "thousandfold/program/fusion.py"} <= set(here)
    assert not any(name.startswith(("installed:", "thousandfold/gpu/")) for name in here)
    with (site / "thousandfold" / "kernels" / "products.py").open("a") as file:
        file.write("EDITED = 1\n")
    edited = Sources().code_files(["rankfall.train.machine.engine"])
    assert {name for name in here if here[name] != edited[name]} == {"thousandfold/kernels/products.py"}
