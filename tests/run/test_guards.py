"""Guards that no component reads data that no key knows, by whatever means, and that what is declared is never refused."""

import json
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import torch
from helpers import config
from safetensors.torch import save_file

import rankfall
from rankfall import cli, components
from rankfall.run import guards
from rankfall.run.guards import NotInKey, Unproved, check_job, guard_job
from rankfall.run.plan import make_plan
from rankfall.run.store import Store
from rankfall.trial.flags import read_flags

HEAD = "import importlib, os, pytest, sys\nfrom pathlib import Path\nimport numpy as np\nimport torch\n"
FILE = "temperature.txt"
READS = {  # ways to read a file
    "read_text": "t = float(Path('temperature.txt').read_text())",
    "numpy text": "t = float(np.loadtxt('temperature.txt'))",
    "torch": "t = float(torch.load('temperature.pt'))",
    "caught": "t = 2.0\ntry:\n    t = float(open('temperature.txt').read())\nexcept BaseException:\n    pass",
    "link": "t = float(open('linked.txt').read())",
    "pandas parquet": "import pandas\nt = float(pandas.read_parquet('temperature.parquet')['t'][0])",
    "safetensors, lazily": "from safetensors import safe_open\nwith safe_open('temperature.safetensors', 'pt') as file:\n"
    "    t = float(file.get_tensor('t'))",
    "memmap": "t = float(np.memmap('temperature.raw', dtype='f8', mode='r')[0])",
    "torch, mapped": "t = float(torch.load('temperature.pt', mmap=True))",
    "hdf5": "h5py = pytest.importorskip('h5py')\nwith h5py.File('temperature.h5') as file:\n    t = float(file['t'][()])",
}
RUNS = {  # ways to run code of another file
    "computed name": "which = 'a'\nt = importlib.import_module('watched_other.sub.' + which).VALUE",
    "by its file": "from importlib.util import module_from_spec, spec_from_file_location\n"
    "spec = spec_from_file_location('made_up', 'watched_other/sub/a.py')\nmodule = module_from_spec(spec)\n"
    "spec.loader.exec_module(module)\nt = module.VALUE",
}


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "watched_other" / "sub").mkdir(parents=True)
    (tmp_path / "watched_other" / "sub" / "a.py").write_text("VALUE = 3.0\n")
    (tmp_path / "temperature.txt").write_text("3")
    (tmp_path / "linked.txt").symlink_to("temperature.txt")
    torch.save(torch.tensor(3.0), tmp_path / "temperature.pt")
    np.full(1, 3.0).tofile(tmp_path / "temperature.raw")
    pandas.DataFrame({"t": [3.0]}).to_parquet(tmp_path / "temperature.parquet")
    save_file({"t": torch.tensor(3.0)}, tmp_path / "temperature.safetensors")
    with suppress(ImportError):
        import h5py

        with h5py.File(tmp_path / "temperature.h5", "w") as file:
            file["t"] = 3.0
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


def raw(**options: Any) -> dict[str, Any]:
    return config(architecture={"normaliser": {"name": "watched_lab:sharp", **options}, "depth": 1})


def compute(**options: Any) -> float:
    """The factor that the normaliser multiplies with, by a job."""
    plan = make_plan(raw(**options))
    (cell,) = plan.cells
    with guard_job([cell.code]):
        found = scale(**options)
        check_job()
        return found


def scale(**options: Any) -> float:
    """Weights of two logits that differ by 1 have a ratio of exp(t)."""
    weights = components.load("normaliser", "watched_lab:sharp")(torch.tensor([0.0, 1.0]), **options)
    return float((weights[1] / weights[0]).log())


def refusal(**options: Any) -> str:
    with pytest.raises(NotInKey) as caught:
        compute(**options)
    message = str(caught.value)
    assert message.count("\n  fix: ") == 1 and len(message.splitlines()) == 2
    return message


@pytest.mark.parametrize(("name", "where"), [*((name, "call") for name in READS), ("read_text", "import")])
def test_a_file_that_no_key_holds_is_refused_however_it_is_read(lab: Path, name: str, where: str) -> None:
    write(lab, READS[name], where)
    assert scale() > 1  # it works when nobody watches
    del sys.modules["watched_lab"]
    file = next(iter(re.findall(r"temperature\w*\.\w+", READS[name])), FILE)
    said = refusal()
    assert re.match(
        rf"(/.*)?watched_lab\.py, line \d+: reads (/.*)?{re.escape(file)}, which no key knows, so nothing is kept\n",
        said,
    )
    assert 'DATA = ["' + file in said


@pytest.mark.parametrize("name", RUNS)
def test_code_that_no_key_holds_is_refused_however_it_is_run(lab: Path, name: str) -> None:
    write(lab, RUNS[name])
    said = refusal()
    assert re.match(
        r"watched_lab\.py, line \d+: runs watched_other/sub/a\.pyc?, which no key knows, so nothing is kept\n", said
    )


def test_folders_of_labs_count(
    lab: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outside of the project, in $TMPDIR, and where the system has files that somebody added."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.setenv("TMPDIR", str(elsewhere / "tmp"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    (elsewhere / "tmp").mkdir()
    for file in (
        elsewhere / FILE,
        elsewhere / "tmp" / FILE,
        Path("/etc/hostname"),
        Path("/usr/share/common-licenses/BSD"),
    ):
        if not file.exists() and file.is_relative_to(elsewhere):
            file.write_text("3")
        if file.exists():
            sys.modules.pop("watched_lab", None)
            write(lab, f"t = 3.0 + 0 * len(Path({str(file)!r}).read_text())")
            assert f"reads {file}, which no key knows" in refusal()


@pytest.mark.parametrize(
    "text",
    [
        "torch.set_float32_matmul_precision('high')\nt = 3.0",
        "torch.set_default_dtype(torch.float64)\nt = 3.0",
    ],
)
def test_a_precision_flag_that_a_component_sets_ends_the_job_and_is_put_back(lab: Path, text: str) -> None:
    write(lab, text)
    before = read_flags()
    with pytest.raises(Unproved, match=r"watched_lab\.py changes torch\.[^\n]*, so nothing is kept\n  fix: "):
        compute()
    assert read_flags() == before


@pytest.mark.long
def test_what_is_declared_is_read(lab: Path) -> None:
    """An option that is a path, a folder, DATA."""
    write(lab, "t = float(Path(file).read_text())", options=", *, file: str")
    for name in (FILE, str(lab / FILE), "linked.txt"):
        assert compute(file=name) == pytest.approx(3)
    (lab / "folder" / "inner").mkdir(parents=True)
    (lab / "folder" / "inner" / FILE).write_text("3")
    write(lab, "t = float((Path(folder) / 'inner' / 'temperature.txt').read_text())", options=", *, folder: str")
    sys.modules.pop("watched_lab")
    assert compute(folder="folder") == pytest.approx(3)
    for where in ("call", "import"):
        sys.modules.pop("watched_lab")
        write(lab, READS["read_text"], where, f"DATA = [{FILE!r}]\n")
        assert compute() == pytest.approx(3)


@pytest.mark.parametrize(
    "text",
    [
        "import tempfile\nwith tempfile.NamedTemporaryFile('w+') as file:\n    file.write('3')\n    file.flush()\n"
        "    t = float(open(file.name).read())",
        "Path('scratch').write_text('3')\nt = float(Path('scratch').read_text())",
        "import json.tool, scipy.special\nt = 3.0\nopen(np.__file__).read()",
        "t = 3.0\ntry:\n    open('is not there')\nexcept FileNotFoundError:\n    pass",
    ],
)
def test_what_is_not_ours_to_hash_is_read(lab: Path, text: str) -> None:
    write(lab, text)
    assert compute() == pytest.approx(3)


# Whole jobs.


def run(lab: Path, verb: str, *rest: str, **changes: Any) -> int:
    (lab / "config.json").write_text(json.dumps(changes))
    return cli.main([verb, "--config", "config.json", *rest])


def error(capsys: pytest.CaptureFixture[str]) -> str:
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error")]
    return line


@pytest.mark.long
def test_a_cell_is_not_kept(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(lab, READS["caught"])
    assert run(lab, "train", "--task", "sorting", "--shard", "0", "--out", "t.parquet", **raw()) == 2
    assert "watched_lab.py, line " in error(capsys)
    assert not list((lab / "results").rglob("*.parquet")) and not (lab / "t.parquet").exists()
    assert not list(Store(lab / "results" / "store").records())
    write(lab, "t = 3.0")
    sys.modules.pop("watched_lab")
    assert run(lab, "train", "--task", "sorting", "--shard", "0", "--out", "t.parquet", **raw()) == 0


@pytest.mark.long
def test_rows_of_a_measure_are_not_kept(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    probe = "def probe(context):\n    value = float(open('temperature.txt').read())\n"
    probe += "    return [{'kind': 'whole', 'accuracy': value}]\n"
    free = "def free(context):\n    value = float(open('temperature.txt').read())\n    return [{'model': 'm', 'depth': 1, 'heads': 1, "
    free += "'log10_paths': 0.0, 'proportion': value, 'length': 1}]\n"
    (lab / "watched_probe.py").write_text(f"TABLE = 'paths'\n{probe}")
    (lab / "watched_free.py").write_text(f"TABLE = 'path_counts'\nNEEDS = 'nothing'\n{free}")
    own = config(measures={"probe": {"measure": "watched_probe:probe"}, "free": {"measure": "watched_free:free"}})
    assert run(lab, "train", "--task", "sorting", "--shard", "0", **own) == 0
    for name, rest in (("probe", ["--task", "sorting", "--shard", "0"]), ("free", [])):
        assert run(lab, "measure", "--measure", name, *rest, "--out", "m.parquet", **own) == 2
        assert re.search(rf"watched_{name}\.py, line [34]: reads temperature\.txt, which no key", error(capsys))
        assert not (lab / "m.parquet").exists()
        assert not list((lab / "results" / "store" / "measures").glob(f"*{name}*"))
        file = lab / f"watched_{name}.py"
        file.write_text(f"DATA = [{FILE!r}]\n{file.read_text()}")
        sys.modules.pop(f"watched_{name}")
        assert run(lab, "measure", "--measure", name, *rest, "--out", "m.parquet", **own) == 0
        (lab / "m.parquet").unlink()


def test_the_engine_is_ours_wherever_it_lies() -> None:
    """It reads its own sources for the digest of its compiled code."""
    import thousandfold

    for package in (rankfall, thousandfold):
        assert package.__file__ is not None
        assert guards.owner_of(package.__file__) == "package"
        assert guards.install_watch().is_known(package.__file__)
