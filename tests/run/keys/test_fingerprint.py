"""Guards the import closure: every way to import is followed, what does not run is left out, what cannot be followed is an error."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rankfall
from rankfall.errors import RankfallError
from rankfall.run.plan.cells import TRAIN_ROOTS
from rankfall.sources import fingerprint
from rankfall.sources.fingerprint import Sources

PACKAGE = ("__init__", "root", "leaf", "other", "sub/__init__", "sub/leaf", "sub/deep/__init__", "sub/deep/leaf")


@pytest.fixture
def package(lab: Path) -> Path:
    """Write a package `pkg` in the working directory."""
    (lab / "pkg" / "sub" / "deep").mkdir(parents=True)
    for name in PACKAGE:
        (lab / "pkg" / f"{name}.py").write_text("value = 1" if name.endswith("leaf") else "")
    return lab / "pkg"


def files() -> set[str]:
    return {file.removeprefix("pkg/").removesuffix(".py") for file in Sources().code_files(["pkg.root"])}


def digest(root: str = "pkg.root") -> str:
    return Sources().fingerprint([root])


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
RUN = "import pkg.root, sys; print(*(m for m in sys.modules if m.split('.')[0] == 'pkg'))"


@pytest.mark.parametrize("text", FORMS)
def test_import_is_followed(package: Path, text: str) -> None:
    """And Python itself imports no other file."""
    (package / "root.py").write_text(text)
    assert files() == ALWAYS | FORMS[text]
    done = subprocess.run([sys.executable, "-c", RUN], capture_output=True, text=True, check=False)
    paths = {name.removeprefix("pkg").removeprefix(".").replace(".", "/") or "__init__" for name in done.stdout.split()}
    assert paths <= {file.removesuffix("/__init__") for file in files()}


PLAIN = "from typing import TYPE_CHECKING\ndef f(x):\n    return x + 1"
EDITS = {  # edit -> whether it counts
    PLAIN.replace("def f", "# a remark\ndef f") + "  # more": False,
    '"""Module."""\n' + PLAIN.replace("    return", '    """Function."""\n    return'): False,
    PLAIN.replace("x + 1", "(\n x\n  +1)"): False,
    f"{PLAIN}\n__version__ = '9'": False,
    f"{PLAIN}\nif TYPE_CHECKING:\n    import pkg.leaf": False,
    PLAIN.replace("x + 1", "x + 2"): True,
    PLAIN.replace("def f", "def g"): True,
    PLAIN.replace("(x)", "(x, y=None)"): True,
}


@pytest.mark.parametrize("text", EDITS)
def test_what_runs_counts_and_nothing_else(package: Path, text: str) -> None:
    (package / "root.py").write_text(PLAIN)
    before = digest()
    (package / "root.py").write_text(text)
    assert text != PLAIN and (digest() != before) is EDITS[text]


def test_edit_counts_wherever_it_is_imported_and_nowhere_else(package: Path) -> None:
    (package / "root.py").write_text("from pkg import leaf")
    before, aside = digest(), digest("pkg.other")
    (package / "leaf.py").write_text("value = 2")
    assert digest() != before and digest("pkg.other") == aside
    (package / "leaf.py").write_text("value = 1")
    assert digest() == before


DYNAMIC = [
    "import importlib\nimportlib.import_module(name)",
    "from importlib import import_module\nimport_module(f'pkg.{name}')",
    "__import__(name)",
    "exec(text)",
    "import runpy\nrunpy.run_path(path)",
]


@pytest.mark.parametrize("text", DYNAMIC)
def test_import_that_cannot_be_followed_makes_all_of_a_package_count_and_is_an_error_in_ours(
    package: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (package / "root.py").write_text(f"import os\n\n{text}")
    assert files() == {*PACKAGE}
    monkeypatch.setattr(fingerprint, "OURS", ("pkg",))
    message = rf"^pkg/root\.py, line {3 + text.count(chr(10))}: `.*` runs code that the fingerprint cannot follow"
    with pytest.raises(RankfallError, match=message):
        files()


@pytest.mark.parametrize("importer", ["rankfall", "working directory"])
def test_helper_outside_the_package_counts(package: Path, monkeypatch: pytest.MonkeyPatch, importer: str) -> None:
    """A component imports a helper beside the Snakefile, wherever the component itself lies."""
    beside = package.parent / "beside"
    beside.mkdir()
    if importer == "rankfall":
        monkeypatch.syspath_prepend(beside)
        monkeypatch.setattr(fingerprint, "OURS", ("pkg",))
    else:
        monkeypatch.chdir(beside)  # the last place that is looked into, on no path
    (beside / "helper.py").write_text("from helped import SCALE")
    (beside / "helped.py").write_text("SCALE = 1")
    (package / "root.py").write_text("import json, numpy, notinstalled\nfrom helper import SCALE")
    before = Sources()
    assert {"helper.py", "helped.py", "pkg/root.py"} <= set(before.code_files(["pkg.root"]))
    (beside / "helped.py").write_text("SCALE = 2")
    assert digest() != before.fingerprint(["pkg.root"])


@pytest.mark.long
def test_numerics_hold_what_training_imports() -> None:
    """Compare with Python itself: what of ours is loaded after importing the trainer, without the loader of components and its caches."""
    program = f"import {', '.join(TRAIN_ROOTS)}, sys; print(*(m.__file__ for n, m in sys.modules.items() if n.split('.')[0] == 'rankfall'))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    root = Path(rankfall.__file__).parents[1]
    loaded = {Path(file).relative_to(root).as_posix() for file in done.stdout.split()}
    loader = {"components", "quantity_files", "modules", "descriptions", "caches", "disk", "errors"}
    assert loaded - set(Sources().code_files(TRAIN_ROOTS)) <= {f"rankfall/{name}.py" for name in loader}


def test_the_text_of_an_installed_engine_is_in_the_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site, roots = tmp_path / "site-packages", ["rankfall.train.machine.engine"]
    engine = Path(rankfall.__file__).parents[2] / "engine" / "src" / "thousandfold"
    shutil.copytree(engine, site / "thousandfold", ignore=shutil.ignore_patterns("__pycache__"))
    expected = Sources().code_files(roots)
    monkeypatch.syspath_prepend(site)
    monkeypatch.setitem(sys.modules, "thousandfold", None)  # type: ignore[arg-type]  # Python's finder prefers what is imported
    monkeypatch.delitem(sys.modules, "thousandfold")
    installed = Sources().code_files(roots)
    assert installed == expected
    assert {f"thousandfold/{name}.py" for name in ("engine", "kernels/products", "program/fusion")} <= set(installed)
    assert not any(name.startswith(("installed:", "thousandfold/gpu/")) for name in installed)
    with (site / "thousandfold" / "kernels" / "products.py").open("a") as file:
        file.write("EDITED = 1\n")
    edited = Sources().code_files(roots)
    assert {name for name in expected if expected[name] != edited[name]} == {"thousandfold/kernels/products.py"}
