"""Guards that no component reads data that no key knows, by whatever means, and that what is declared is never refused."""

import json
import re
import sys
import tempfile
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
import thousandfold
from rankfall import cli, components
from rankfall.run import guards
from rankfall.run.guards import Unproved, check_job, guard_job
from rankfall.run.plan import make_plan
from rankfall.run.store import Store
from rankfall.trial.flags import read_flags

HEAD = "import importlib, os, pytest, sys\nfrom pathlib import Path\nimport numpy as np\nimport torch\n"
FILE = "temperature.txt"
READS = {  # ways to read a file
    "read_text": "t = float(Path('temperature.txt').read_text())",
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
def files(lab: Path) -> Path:
    """Write the number 3 in files of all kinds."""
    (lab / "watched_other" / "sub").mkdir(parents=True)
    (lab / "watched_other" / "sub" / "a.py").write_text("VALUE = 3.0\n")
    (lab / FILE).write_text("3")
    (lab / "linked.txt").symlink_to(FILE)
    torch.save(torch.tensor(3.0), lab / "temperature.pt")
    np.full(1, 3.0).tofile(lab / "temperature.raw")
    pandas.DataFrame({"t": [3.0]}).to_parquet(lab / "temperature.parquet")
    save_file({"t": torch.tensor(3.0)}, lab / "temperature.safetensors")
    with suppress(ImportError):
        import h5py

        with h5py.File(lab / "temperature.h5", "w") as file:
            file["t"] = 3.0
    return lab


def write(files: Path, text: str, where: str = "call", top: str = "", options: str = "") -> None:
    """Write the normaliser watched_lab:sharp, which does something when it is called, or when it is imported."""
    body = f"def sharp(logits{options}):\n    global t\n"
    if where == "call":
        body += "".join(f"    {line}\n" for line in text.splitlines())
    else:
        top += text + "\n"
    (files / "watched_lab.py").write_text(f"{HEAD}{top}{body}    return (t * logits).softmax(-1)\n")
    sys.modules.pop("watched_lab", None)


def configure(**options: Any) -> dict[str, Any]:
    return config(architecture={"normaliser": {"name": "watched_lab:sharp", **options}, "depth": 1})


def compute(**options: Any) -> float:
    """Return the factor that the normaliser multiplies with, by a job."""
    (cell,) = make_plan(configure(**options)).cells
    with guard_job([cell.code]):
        factor = call(**options)
        check_job()
        return factor


def call(**options: Any) -> float:
    """Return the factor: weights of two logits that differ by 1 have a ratio of exp(t)."""
    weights = components.load("normaliser", "watched_lab:sharp")(torch.tensor([0.0, 1.0]), **options)
    return float((weights[1] / weights[0]).log())


def refusal() -> str:
    with pytest.raises(Unproved) as caught:
        compute()
    message = str(caught.value)
    assert message.count("\n  fix: ") == 1 and len(message.splitlines()) == 2
    return message


@pytest.mark.parametrize(("name", "where"), [*((name, "call") for name in READS), ("read_text", "import")])
def test_a_file_that_no_key_holds_is_refused_however_it_is_read(files: Path, name: str, where: str) -> None:
    write(files, READS[name], where)
    assert call() > 1  # it works when nobody watches
    del sys.modules["watched_lab"]
    file = next(iter(re.findall(r"temperature\w*\.\w+", READS[name])), FILE)
    message = refusal()
    line = rf"(/.*)?watched_lab\.py, line \d+: reads (/.*)?{re.escape(file)}, which no key knows, so nothing is kept\n"
    assert re.match(line, message) and 'DATA = ["' + file in message


@pytest.mark.parametrize("name", RUNS)
def test_code_that_no_key_holds_is_refused_however_it_is_run(files: Path, name: str) -> None:
    write(files, RUNS[name])
    line = r"watched_lab\.py, line \d+: runs watched_other/sub/a\.pyc?, which no key knows, so nothing is kept\n"
    assert re.match(line, refusal())


def test_folders_of_labs_count(
    lab: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outside of the project, in $TMPDIR, and where the system has files that somebody added."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.setenv("TMPDIR", str(elsewhere / "tmp"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    (elsewhere / "tmp").mkdir()
    ours = [elsewhere / FILE, elsewhere / "tmp" / FILE]
    for file in ours:
        file.write_text("3")
    systems = [Path("/etc/hostname"), Path("/usr/share/common-licenses/BSD")]
    for file in (*ours, *(file for file in systems if file.exists())):
        write(lab, f"t = 3.0 + 0 * len(Path({str(file)!r}).read_text())")
        assert f"reads {file}, which no key knows" in refusal()


@pytest.mark.parametrize("call", ["set_float32_matmul_precision('high')", "set_default_dtype(torch.float64)"])
def test_a_precision_flag_that_a_component_sets_ends_the_job_and_is_put_back(lab: Path, call: str) -> None:
    write(lab, f"torch.{call}\nt = 3.0")
    before = read_flags()
    with pytest.raises(Unproved, match=r"watched_lab\.py changes torch\.[^\n]*, so nothing is kept\n  fix: "):
        compute()
    assert read_flags() == before


@pytest.mark.long
def test_what_is_declared_is_read(files: Path) -> None:
    """An option that is a path, a folder, DATA."""
    write(files, "t = float(Path(file).read_text())", options=", *, file: str")
    for name in (FILE, str(files / FILE), "linked.txt"):
        assert compute(file=name) == pytest.approx(3)
    (files / "folder" / "inner").mkdir(parents=True)
    (files / "folder" / "inner" / FILE).write_text("3")
    write(files, f"t = float((Path(folder) / 'inner' / {FILE!r}).read_text())", options=", *, folder: str")
    assert compute(folder="folder") == pytest.approx(3)
    for where in ("call", "import"):
        write(files, READS["read_text"], where, f"DATA = [{FILE!r}]\n")
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


def run(verb: str, *words: str, **configuration: Any) -> int:
    Path("config.json").write_text(json.dumps(configuration))
    return cli.main([verb, "--config", "config.json", *words])


def read_error(capsys: pytest.CaptureFixture[str]) -> str:
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error")]
    return line


SHARD = ("--task", "sorting", "--shard", "0")


@pytest.mark.long
def test_a_cell_is_not_kept(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(files, READS["caught"])
    assert run("train", *SHARD, "--out", "t.parquet", **configure()) == 2
    assert "watched_lab.py, line " in read_error(capsys)
    assert not list((files / "results").rglob("*.parquet")) and not (files / "t.parquet").exists()
    assert not list(Store(files / "results" / "store").records())
    write(files, "t = 3.0")
    assert run("train", *SHARD, "--out", "t.parquet", **configure()) == 0


@pytest.mark.long
def test_rows_of_a_measure_are_not_kept(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    read = f"    value = float(open({FILE!r}).read())\n"
    row = "{'model': 'm', 'depth': 1, 'heads': 1, 'log10_paths': 0.0, 'proportion': value, 'length': 1}"
    probe = f"TABLE = 'paths'\ndef probe(context):\n{read}    return [{{'kind': 'whole', 'accuracy': value}}]\n"
    free = f"TABLE = 'path_counts'\nNEEDS = 'nothing'\ndef free(context):\n{read}    return [{row}]\n"
    measures = {"probe": {"measure": "watched_probe:probe"}, "free": {"measure": "watched_free:free"}}
    configuration = config(measures=measures)
    for name, text in (("probe", probe), ("free", free)):
        (files / f"watched_{name}.py").write_text(text)
    assert run("train", *SHARD, **configuration) == 0
    for name, shard in (("probe", SHARD), ("free", ())):
        words = ("--measure", name, *shard, "--out", "m.parquet")
        assert run("measure", *words, **configuration) == 2
        assert re.search(rf"watched_{name}\.py, line [34]: reads temperature\.txt, which no key", read_error(capsys))
        assert not (files / "m.parquet").exists()
        assert not list((files / "results" / "store" / "measures").glob(f"*{name}*"))
        file = files / f"watched_{name}.py"
        file.write_text(f"DATA = [{FILE!r}]\n{file.read_text()}")
        sys.modules.pop(f"watched_{name}")
        assert run("measure", *words, **configuration) == 0
        (files / "m.parquet").unlink()


def test_the_engine_is_ours_wherever_it_lies() -> None:
    """It reads its own sources for the digest of its compiled code."""
    for package in (rankfall, thousandfold):
        assert package.__file__ is not None
        assert guards.owner_of(package.__file__) == "package"
        assert guards.install_watch().is_known(package.__file__)
