"""Guards that what a computation reads is in its key, by whatever means it is read, and that what is declared is never refused."""

import json
import os
import py_compile
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers import config

from rankfall import cli, components
from rankfall.run.guards import watch
from rankfall.run.guards.declared import Declared, NotInKey
from rankfall.run.guards.unchanged import prove_code
from rankfall.run.plan import make_plan
from rankfall.run.plan.cell import Cell
from rankfall.run.store import Store

HEAD = "import importlib, os, runpy, sys, threading\nfrom pathlib import Path\nimport numpy as np\nimport torch\n"
FILE = "temperature.txt"
READS = {  # ways to read a file
    "read_text": "t = float(Path('temperature.txt').read_text())",
    "open": "t = float(open('temperature.txt').read())",
    "by descriptor": "t = float(os.read(os.open('temperature.txt', os.O_RDONLY), 9))",
    "update mode": "t = float(open('temperature.txt', 'r+').read())",
    "numpy text": "t = float(np.loadtxt('temperature.txt'))",
    "numpy": "t = float(np.load('temperature.npy'))",
    "numpy mapped": "t = float(np.load('temperature.npy', mmap_mode='r')[()])",
    "numpy raw": "t = float(np.fromfile('temperature.npy', dtype='u1')[0])",
    "torch": "t = float(torch.load('temperature.pt'))",
    "exec": "exec(open('temperature_code.py').read(), globals()); t = VALUE",
    "compile": "exec(compile(Path('temperature_code.py').read_text(), 'other', 'exec'), globals()); t = VALUE",
    "run as a program": "t = runpy.run_path('temperature_code.py')['VALUE']",
    "from within exec": "exec('global t; t = float(open(\"temperature.txt\").read())')",
    "lambda": "t = (lambda: float(open('temperature.txt').read()))()",
    "caught": "t = 2.0\ntry:\n    t = float(open('temperature.txt').read())\nexcept BaseException:\n    pass",
    "thread": "found = []\nthread = threading.Thread(target=lambda: found.append(open('temperature.txt').read()))\nthread.start()\n"
    "thread.join()\nt = 2.0",
    "another folder": "os.chdir('elsewhere')\ntry:\n    t = float(open('../temperature.txt').read())\nfinally:\n    os.chdir('..')",
    "link": "t = float(open('linked.txt').read())",
}
RUNS = {  # ways to run code of another file
    "computed name": "which = 'a'\nt = importlib.import_module('watched_other.sub.' + which).VALUE",
    "computed import": "which = 'a'\nt = __import__('watched_other.sub.' + which, fromlist=['VALUE']).VALUE",
    "by its file": "from importlib.util import module_from_spec, spec_from_file_location\n"
    "spec = spec_from_file_location('made_up', 'watched_other/sub/a.py')\nmodule = module_from_spec(spec)\n"
    "spec.loader.exec_module(module)\nt = module.VALUE",
    "caught": "which = 'a'\nt = 2.0\ntry:\n    t = importlib.import_module('watched_other.sub.' + which).VALUE\n"
    "except BaseException:\n    pass",
    "part of this package": "which = 'l2'\nt = float(hasattr(importlib.import_module('rankfall.nets.normalisers.' + which), 'l2'))",
    "component by name": "from rankfall.components import load\nt = float(callable(load('normaliser', 'relu' + '2')))",
}


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "watched_other" / "sub").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "watched_other" / "sub" / "a.py").write_text("VALUE = 3.0\n")
    (tmp_path / "temperature.txt").write_text("3")
    (tmp_path / "linked.txt").symlink_to("temperature.txt")
    (tmp_path / "temperature_code.py").write_text("VALUE = 3.0\n")
    np.save(tmp_path / "temperature.npy", 3.0)
    torch.save(torch.tensor(3.0), tmp_path / "temperature.pt")
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("watched_")]:
        del sys.modules[name]


def write(lab: Path, text: str, where: str = "call", top: str = "", options: str = "") -> None:
    """The normaliser watched_lab:sharp, which does something when it is called, or when it is imported."""
    body = f"def sharp(logits{options}):\n    global t\n"
    lines = text.splitlines()
    if where == "call":
        body += "".join(f"    {line}\n" for line in lines)
    else:
        top += text + "\n"
    (lab / "watched_lab.py").write_text(f"{HEAD}{top}{body}    return (t * logits).softmax(-1)\n")


def planned(**options: Any) -> Cell:
    (cell,) = make_plan(raw(**options)).cells
    return cell


def raw_of_package() -> dict[str, Any]:
    return config(architecture={"depth": 1})


def raw(**options: Any) -> dict[str, Any]:
    return config(architecture={"normaliser": {"name": "watched_lab:sharp", **options}, "depth": 1})


def compute(**options: Any) -> float:
    """The factor that the normaliser multiplies with, by a job."""
    plan = make_plan(raw(**options))
    (cell,) = plan.cells
    with prove_code([cell.code], plan.texts), watch.numerics(cell.code):
        return scale(**options)


def scale(**options: Any) -> float:
    """Weights of two logits that differ by 1 have a ratio of exp(t)."""
    weights = components.load("normaliser", "watched_lab:sharp")(torch.tensor([0.0, 1.0]), **options)
    return float((weights[1] / weights[0]).log())


def refusal(**options: Any) -> str:
    with pytest.raises(NotInKey) as caught:
        compute(**options)
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("where", ["call", "import"])
@pytest.mark.parametrize("name", READS)
def test_a_file_that_no_key_holds_is_refused_however_it_is_read(lab: Path, name: str, where: str) -> None:
    write(lab, READS[name], where)
    assert scale() > 1  # it works when nobody watches
    del sys.modules["watched_lab"]
    file = next(iter(re.findall(r"temperature\w*\.\w+", READS[name])), FILE)
    said = refusal()
    assert re.match(
        rf"(/.*)?watched_lab\.py, line \d+: (reads|runs) (/.*)?{re.escape(file)}, which is not in the key, so nothing is kept; ",
        said,
    )
    assert file.endswith(".py") or 'DATA = ["' + file in said


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("where", ["call", "import"])
@pytest.mark.parametrize("name", RUNS)
def test_code_that_no_key_holds_is_refused_however_it_is_run(lab: Path, name: str, where: str, compiled: bool) -> None:
    if compiled:
        py_compile.compile("watched_other/sub/a.py")
    write(lab, RUNS[name], where)
    assert scale() > 1 - 1e-6  # a logarithm of two weights, which are rounded as the processor's vectors do
    for module in [module for module in sys.modules if module.startswith(("watched_", "rankfall.nets.normalisers."))]:
        del sys.modules[module]
    said = refusal()
    assert re.match(
        r"watched_lab\.py, line \d+: runs \S+(a|l2|relu2)(\.cpython-\d+)?\.pyc?, which is not in the key, so nothing is kept; import it",
        said,
    )


CALLS = {  # what a component must not do -> the first words of the refusal
    "subprocess": ("import subprocess\nt = float(subprocess.run(['echo', '3'], stdout=-1).stdout)",
        "starts another program, echo,"),
    "os.system": ("t = 3.0 + os.system('true')", "starts another program, true,"),
    "posix_spawn": ("os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)\nt = 3.0", "starts another program, /bin/true,"),
    "popen": ("t = float(os.popen('echo 3').read())", "starts another program"),
    "fork": ("t = 3.0\nif os.fork() == 0: os._exit(0)", "starts another process (os.fork)"),
    "pool": ("import multiprocessing\n"
        "with multiprocessing.get_context('fork').Pool(1) as pool: t = pool.apply(float, (3,))", "starts another process"),
    "sqlite3": ("import sqlite3\nt = float(sqlite3.connect(':memory:').execute('select 3').fetchone()[0])", "opens a database, :memory:,"),
    "ctypes": ("import ctypes\nt = 3.0 + 0 * ctypes.CDLL('libm.so.6').abs(1)",
        "loads a library of the system, libm.so.6,"),
    "this program": ("import ctypes\nt = 3.0 + 0 * ctypes.CDLL(None).abs(1)",
        "loads a library of the system (ctypes.dlopen)"),
    "socket": ("import socket\nt = 3.0\ntry: socket.create_connection(('127.0.0.1', 9), 1)\nexcept OSError: pass", "asks another machine"),
    "url": ("import urllib.request\n"
        "t = 3.0\ntry: urllib.request.urlopen('http://127.0.0.1:9/')\nexcept OSError: pass", "asks another machine"),
    "caught": ("t = 3.0\ntry: os.system('true')\nexcept BaseException: pass", "starts another program, true,"),
    "thread": ("thread = threading.Thread(target=lambda: os.system('true'))\nthread.start()\nthread.join()\nt = 3.0",
        "starts another program, true,"),
    "environ": ("t = float(os.environ.get('RANK_T', '3'))", "reads an environment variable, RANK_T,"),
    "environ, one that passes": ("t = 3.0 + 0 * len(os.environ['PATH'])", "reads an environment variable, PATH,"),
    "getenv": ("t = float(os.getenv('RANK_T') or 3)", "reads an environment variable, RANK_T,"),
    "environ, in": ("t = 3.0 if 'RANK_T' not in os.environ else 4.0", "reads an environment variable, RANK_T,"),
    "environ, all": ("t = 3.0 + 0 * len(dict(os.environ))", "reads an environment variable"),
    "environ, set": ("os.environ['RANK_T'] = '3'\nt = 3.0", "changes an environment variable, RANK_T,"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("where", ["call", "import"])
@pytest.mark.parametrize("name", CALLS)
def test_what_no_key_can_tell_is_refused_in_one_line(
    lab: Path, name: str, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK_T", "3")
    text, words = CALLS[name]
    write(lab, text, where)
    said = refusal()
    assert re.match(r"watched_lab\.py, line \d+: ", said) and f": {words}" in said
    assert "and no key knows what comes of it, so nothing is kept; " in said
    assert os.environ["RANK_T"] == "3"


def test_what_is_not_passed_is_not_there_for_libraries_either(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor for programs that a job starts. Afterwards all is as it was."""
    monkeypatch.setenv("RANK_T", "3")
    monkeypatch.setenv("OMP_SCHEDULE", "static")
    (cell,) = (plan := make_plan(raw_of_package())).cells
    with prove_code([cell.code], plan.texts), watch.hand_over():  # this file is no component
        assert "RANK_T" not in os.environ and os.environ["OMP_SCHEDULE"] == "static" and os.environ["PATH"]
        assert "RANK_T" not in subprocess.run(["env"], stdout=subprocess.PIPE, text=True, check=True).stdout
        with pytest.raises(KeyError):
            os.environ["RANK_T"]
        os.environ["RANK_OTHER"] = "made within"
    assert os.environ["RANK_T"] == "3" and "RANK_OTHER" not in os.environ


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("import numba\nt = float(numba.njit(lambda x: x + 1)(2.0))", marks=pytest.mark.long),
        "import scipy.linalg, uuid, ctypes, multiprocessing, sqlite3\nt = 3.0",
        "import tempfile\nt = 3.0\nPath(tempfile.gettempdir()).exists(), Path('~').expanduser()",
    ],
)
def test_what_libraries_do_by_themselves_is_no_components_doing(lab: Path, text: str) -> None:
    for where in ("call", "import"):
        sys.modules.pop("watched_lab", None)
        write(lab, text, where)
        assert compute() == pytest.approx(3)


@pytest.mark.long
def test_a_helper_of_a_helper_is_named_and_so_is_the_component_it_helps(lab: Path) -> None:
    """Imported late, and only by the last of them."""
    write(lab, "from watched_helper import get\nt = get()")
    (lab / "watched_helper.py").write_text("def get():\n    import watched_deeper\n    return watched_deeper.get()\n")
    (lab / "watched_deeper.py").write_text(
        f"from pathlib import Path\ndef get():\n    return float(Path({FILE!r}).read_text())\n"
    )
    assert refusal().startswith("watched_deeper.py, line 3 (for watched_lab.py): reads temperature.txt, ")
    (lab / "watched_deeper.py").write_text(
        "import importlib\ndef get(which='a'):\n    return importlib.import_module('watched_other.sub.' + which).VALUE\n"
    )
    del sys.modules["watched_deeper"]
    assert refusal().startswith("watched_deeper.py, line 3 (for watched_lab.py): runs watched_other/sub/a.py, ")


def test_a_watch_that_fails_ends_the_job(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where the component catches the error: what it read then was watched by nobody."""
    write(lab, READS["caught"], top=f"DATA = [{FILE!r}]\n")

    real = Declared.check

    def check(self: Declared, path: str, loaded: bool = False) -> str | None:
        if path.endswith(FILE):
            raise ValueError("a fault of its own")
        return real(self, path, loaded)

    monkeypatch.setattr(Declared, "check", check)
    assert re.search("the watch over what is read failed at open .*ValueError: a fault of its own; nothing", refusal())


@pytest.mark.long
def test_what_is_declared_is_read(lab: Path) -> None:
    """An option that is a path, DATA, a folder, an import at the top, a package of one's own that is imported by computed names."""
    read = "t = float(Path(file).read_text())"
    write(lab, read, options=", *, file: str")
    for name in (FILE, f"./{FILE}", str(lab / FILE), "linked.txt"):
        assert compute(file=name) == pytest.approx(3)
    (lab / f"other_{FILE}").write_text("3")
    write(lab, "t = float(Path('other_' + file).read_text())", options=", *, file: str")
    sys.modules.pop("watched_lab")
    with pytest.raises(NotInKey, match="temperature"):
        compute(file=FILE)
    (lab / "folder" / "inner").mkdir(parents=True)
    (lab / "folder" / "inner" / FILE).write_text("3")
    write(lab, "t = float((Path(folder) / 'inner' / 'temperature.txt').read_text())", options=", *, folder: str")
    sys.modules.pop("watched_lab")
    assert compute(folder="folder") == pytest.approx(3)
    (lab / "folder" / ".hidden").write_text("3")  # does not count, so it must not be read
    write(lab, "t = float((Path(folder) / '.hidden').read_text())", options=", *, folder: str")
    sys.modules.pop("watched_lab")
    assert "reads folder/.hidden, which is not in the key" in refusal(folder="folder")
    texts = {
        "data": (f"DATA = [{FILE!r}]\n", READS["read_text"]),
        "at import": (f"DATA = [{FILE!r}]\n", READS["numpy text"]),
        "import": ("import watched_other.sub.a\n", RUNS["computed name"]),
        "import, by hand": ("import watched_other.sub.a\n", RUNS["by its file"]),
    }
    for top, text in texts.values():
        for where in ("call", "import"):
            for module in [module for module in sys.modules if module.startswith("watched_")]:
                del sys.modules[module]
            write(lab, text, where, top)
            assert compute() == pytest.approx(3)


def test_a_package_of_ones_own_may_import_its_modules_by_computed_names(lab: Path) -> None:
    """All of it is in the key."""
    (lab / "watched_other" / "__init__.py").write_text("")
    (lab / "watched_other" / "sub" / "__init__.py").write_text("")
    text = "import importlib\ndef sharp(logits, *, which: str):\n    t = importlib.import_module('watched_other.sub.' + which).VALUE\n"
    (lab / "watched_other" / "norm.py").write_text(text + "    return (t * logits).softmax(-1)\n")
    architecture = {"normaliser": {"name": "watched_other.norm:sharp", "which": "a"}, "depth": 1}
    (cell,) = (plan := make_plan(config(architecture=architecture))).cells
    with prove_code([cell.code], plan.texts), watch.numerics(cell.code):
        components.load("normaliser", "watched_other.norm:sharp")(torch.zeros(2), which="a")


@pytest.mark.long
def test_a_stale_compiled_file_is_not_run_by_hand_either(lab: Path) -> None:
    file = lab / "watched_other" / "sub" / "a.py"
    py_compile.compile(str(file), doraise=True)
    write(lab, RUNS["by its file"], top="import watched_other.sub.a\n")
    assert compute() == pytest.approx(3)  # the compiled file is of this text
    stat = file.stat()
    file.write_text("VALUE = 4.0\n")
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    for module in [module for module in sys.modules if module.startswith("watched_")]:
        del sys.modules[module]
    assert "it was compiled from another text" in refusal()


@pytest.mark.parametrize("declared", ["option", "folder", "code"])
def test_a_declared_file_is_what_was_planned_when_it_is_opened(lab: Path, declared: str) -> None:
    """Edited before it is read and edited back afterwards: a look at the end would see nothing."""
    (lab / "folder").mkdir()
    (lab / "folder" / FILE).write_text("3")
    file = {"option": FILE, "folder": f"folder/{FILE}", "code": "temperature_code.py"}[declared]
    before = (lab / file).read_text()
    (lab / "edited").write_text(before.replace("3", "4"))
    (lab / "original").write_text(before)
    lines = [
        f"os.replace('edited', {file!r})",
        "exec(open('temperature_code.py').read(), globals())"
        if declared == "code"
        else f"t = float(open({file!r}).read())",
        "t = VALUE" if declared == "code" else "pass",
        f"os.replace('original', {file!r})",
    ]
    option = {"option": FILE, "folder": "folder", "code": ""}[declared]
    top = "import temperature_code\n" if declared == "code" else ""
    write(lab, "\n".join(lines), top=top, options="" if declared == "code" else ", *, file: str")
    said = refusal(**({"file": option} if option else {}))
    assert f"{option or 'temperature_code.py'} was edited: run again" in said


@pytest.mark.parametrize(
    "text",
    [
        "import tempfile\nwith tempfile.NamedTemporaryFile('w+') as file:\n    file.write('3')\n    file.flush()\n"
        "    t = float(open(file.name).read())",
        "Path('scratch').write_text('3')\nt = float(Path('scratch').read_text())",
        "t = 3.0\nopen('/proc/self/status').read()\nopen('/etc/hosts').read()\nopen(os.devnull).read()",
        "import json.tool, scipy.special\nt = 3.0\nopen(np.__file__).read()",
        "import traceback, inspect\nt = 3.0\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    traceback.format_exc()\n"
        "inspect.getsource(sharp)",
        "t = 3.0\nopen('log', 'a').write('called')",
        "import warnings\nt = 3.0\nwith warnings.catch_warnings():\n    warnings.simplefilter('always')\n    warnings.warn('look')",
        "t = 3.0\nfrom importlib.metadata import distributions\nassert any(one.read_text('entry_points.txt') == 'here' for one in\n"
        "    distributions(path=['.']))",
        "t = 3.0\ntry:\n    open('is not there')\nexcept FileNotFoundError:\n    pass",
    ],
)
def test_what_is_not_ours_to_hash_is_read(lab: Path, text: str) -> None:
    write(lab, text)
    (lab / "log").write_text("before ")
    (lab / "editable.egg-info").mkdir()
    (lab / "editable.egg-info" / "entry_points.txt").write_text("here")
    assert compute() == pytest.approx(3)


def test_modules_that_another_cell_brought_do_not_hide_what_they_read(lab: Path) -> None:
    """A helper reads a file when it is imported. The component that comes first names it, the second does not."""
    (lab / "watched_helper.py").write_text(f"t = float(open({FILE!r}).read())\n")
    (lab / "watched_first.py").write_text(
        f"DATA = [{FILE!r}]\nfrom watched_helper import t\ndef sharp(logits):\n    return t * logits\n"
    )
    (lab / "watched_second.py").write_text("from watched_helper import t\ndef sharp(logits):\n    return t * logits\n")
    architectures = {name: {"normaliser": f"watched_{name}:sharp", "depth": 1} for name in ("first", "second")}
    plan = make_plan(
        config()
        | {
            "architectures": architectures,
            "grid": [{"task": "sorting", "architecture": ["first", "second"], "training": "short", "seed": 0}],
        }
    )
    one, two = (next(cell for cell in plan.cells if cell.architecture.name == name) for name in ("first", "second"))
    with prove_code([one.code, two.code], plan.texts):
        with watch.numerics(one.code):
            components.load("normaliser", "watched_first:sharp")
        with pytest.raises(NotInKey, match=r"^watched_helper\.py: reads temperature\.txt"), watch.numerics(two.code):
            components.load("normaliser", "watched_second:sharp")


# Whole jobs.


def run(lab: Path, verb: str, *rest: str, **changes: Any) -> int:
    (lab / "config.json").write_text(json.dumps(changes))
    return cli.main([verb, "--config", "config.json", *rest])


def error(capsys: pytest.CaptureFixture[str]) -> str:
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error")]
    return line


@pytest.mark.long
@pytest.mark.parametrize("text", [READS["read_text"], READS["caught"], RUNS["computed name"]])
def test_a_cell_is_not_kept(lab: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    write(lab, text)
    assert run(lab, "train", "--task", "sorting", "--shard", "0", "--out", "t.parquet", **raw()) == 2
    assert "watched_lab.py, line " in error(capsys)
    assert not list((lab / "results").rglob("*.parquet")) and not (lab / "t.parquet").exists()
    assert not list(Store(lab / "results" / "store").records())
    write(lab, "t = 3.0")
    sys.modules.pop("watched_lab")
    assert run(lab, "train", "--task", "sorting", "--shard", "0", "--out", "t.parquet", **raw()) == 0


@pytest.mark.long
def test_a_data_set_is_not_kept(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "from rankfall.tasks.sorting import sorting\nINPUTS = 'tokens'\nTARGETS = 'classes'\n"
    text += "def drawn(rng):\n    size = 20 * int(open('temperature.txt').read())\n"
    text += "    return sorting(rng, train=size, test=32, length=5, symbols=6)\n"
    (lab / "watched_data.py").write_text(text)
    own = config() | {"tasks": {"sorting": {"task": "watched_data:drawn"}}}
    for verb, rest in (("data", ["--task", "sorting"]), ("train", ["--task", "sorting", "--shard", "0"])):
        assert run(lab, verb, *rest, "--out", "t.parquet", **own) == 2
        assert "watched_data.py, line 5: reads temperature.txt, which is not in the key" in error(capsys)
        assert not list((lab / "results").rglob("*.safetensors"))
    (lab / "watched_data.py").write_text(f"DATA = [{FILE!r}]\n{text}")
    sys.modules.pop("watched_data")
    assert run(lab, "data", "--task", "sorting", "--out", "t.parquet", **own) == 0


@pytest.mark.long
def test_rows_of_a_measure_are_not_kept(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    probe = "def probe(context):\n    value = float(open('temperature.txt').read())\n"
    probe += "    return [{'member': m, 'kind': 'whole', 'accuracy': value} for m in range(len(context.cells))]\n"
    free = "def free(context):\n    value = float(open('temperature.txt').read())\n    return [{'model': 'm', 'depth': 1, 'heads': 1, "
    free += "'log10_paths': 0.0, 'proportion': value, 'length': 1}]\n"
    (lab / "watched_probe.py").write_text(f"TABLE = 'paths'\n{probe}")
    (lab / "watched_free.py").write_text(f"TABLE = 'path_counts'\nNEEDS = 'nothing'\n{free}")
    own = config(measures={"probe": {"measure": "watched_probe:probe"}, "free": {"measure": "watched_free:free"}})
    assert run(lab, "train", "--task", "sorting", "--shard", "0", **own) == 0
    for name, rest in (("probe", ["--task", "sorting", "--shard", "0"]), ("free", [])):
        assert run(lab, "measure", "--measure", name, *rest, "--out", "m.parquet", **own) == 2
        assert re.search(rf"watched_{name}\.py, line [34]: reads temperature\.txt, which is not", error(capsys))
        assert not (lab / "m.parquet").exists()
        assert not list((lab / "results" / "store" / "measures").glob(f"*{name}*"))
        file = lab / f"watched_{name}.py"
        file.write_text(f"DATA = [{FILE!r}]\n{file.read_text()}")
        sys.modules.pop(f"watched_{name}")
        assert run(lab, "measure", "--measure", name, *rest, "--out", "m.parquet", **own) == 0
        (lab / "m.parquet").unlink()


@pytest.mark.long
def test_a_figure_is_not_drawn(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Through a lambda that is the text of an option; the same table is read without objection."""
    text = "TABLES = ['cells']\nfrom rankfall.report.style import Picture, canvas\ndef drawn(read, *, size: str = 'lambda: 3'):\n"
    text += "    rows = len(read('cells'))\n    figure, _ = canvas(1, 1, float(eval(size)()), 3)\n"
    text += "    return Picture(figure, f'{rows} cells')\n"
    (lab / "watched_figure.py").write_text(text)
    size = f"lambda: open({FILE!r}).read()"
    own = config(figures={"mine": {"figure": "watched_figure:drawn", "size": size}})
    assert run(lab, "train", "--task", "sorting", "--shard", "0", "--out", "tables/cells.parquet", **own) == 0
    command = ("figure", "--name", "mine", "--tables", "tables", "--out", "mine.png")
    assert run(lab, *command, **own) == 2
    assert "watched_figure.py, line 5: reads temperature.txt, which is not in the key" in error(capsys)
    assert not (lab / "mine.png").exists()
    del own["figures"]["mine"]["size"]
    assert run(lab, *command, **own) == 0
    assert (lab / "mine.png").exists()


@pytest.mark.long
def test_topics_differ_between_versions_of_python_and_must_be_in_the_key(lab: Path) -> None:
    write(lab, "from pydoc_data.topics import topics\nt = 3.0")
    sys.modules.pop("pydoc_data.topics", None)
    assert "topics.py" in refusal() or "topics.cpython" in refusal()
    write(
        lab,
        "from pydoc_data.topics import topics\nt = 3.0",
        top="READS = {'topics': 'pydoc_data.topics'}\n",
        options=", *, text: str = 'topics'",
    )
    sys.modules.pop("watched_lab")
    assert "pydoc_data.topics" in planned().code
    assert compute(text="topics") == pytest.approx(3)


def test_watching_costs_nothing_to_speak_of(lab: Path) -> None:
    """Processor time of an opened file, 10,000 times: the hook idle, and in a job. A job opens a few hundred files and takes seconds."""
    write(lab, "t = 3.0")

    def seconds() -> float:
        began = time.thread_time()
        for _ in range(10_000):
            with open(os.devnull):
                pass
        return (time.thread_time() - began) / 10_000

    plan = make_plan(raw())
    (cell,) = plan.cells
    with prove_code([cell.code], plan.texts):
        pass
    idle = min(seconds() for _ in range(3))
    with prove_code([cell.code], plan.texts), watch.numerics(cell.code):
        watched = min(seconds() for _ in range(3))
    assert watched - idle < 50e-6
