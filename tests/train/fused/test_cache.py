"""Guards the machine code that the fused engine keeps: not run where a byte of it has changed, made with numba's usual settings alone."""

import gc
import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers import config

from rankfall.errors import RankfallError
from rankfall.run.jobs import training as job
from rankfall.run.jobs.engine import Settings
from rankfall.run.plan import make_plan
from rankfall.run.store import Store
from rankfall.train.progress import Progress

numba = pytest.importorskip("numba")
from rankfall.train.fused import cache  # noqa: E402


def kept(folder: Path) -> Path:
    """A file as numba leaves it."""
    path = folder / "step.nbc"
    path.write_bytes(b"machine code")
    return path


@pytest.mark.parametrize("now", [b"machine Code", b"machine", b"", None])
def test_kept_code_is_whole_or_made_anew(tmp_path: Path, now: bytes | None) -> None:
    assert cache.is_whole(tmp_path) is False  # whoever kept it was killed before it was sealed
    path = kept(tmp_path)
    assert not cache.is_whole(tmp_path)
    cache.seal(tmp_path)
    assert cache.is_whole(tmp_path)
    if now is None:
        path.unlink()
    else:
        path.write_bytes(now)
    assert not cache.is_whole(tmp_path)
    cache.clear(tmp_path)
    assert not path.exists()


def test_sources_elsewhere_find_the_same_machine_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every checkout, and every copy for a test, had compiled it anew."""
    found = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "kernels_elsewhere.py").write_text("def twice(x):\n    return 2 * x\n")
        with monkeypatch.context() as patch:  # numba imports it by name when it loads what it kept
            patch.syspath_prepend(tmp_path / name)
            module = importlib.import_module("kernels_elsewhere")
            assert module.__file__ == str(tmp_path / name / "kernels_elsewhere.py")
            entry: Any = numba.njit(module.twice)
            entry._cache = cache.cache_in(tmp_path, entry.py_func)
            assert entry(21) == 42
        found.append((sum(entry.stats.cache_hits.values()), sum(entry.stats.cache_misses.values())))
        del entry, module, sys.modules["kernels_elsewhere"]
        gc.collect()  # else numba may find the first one's environment in memory
    assert found == [(0, 1), (1, 0)]
    assert cache.kept_files(tmp_path)


@pytest.mark.parametrize("name", cache.STEERING)
def test_settings_that_change_the_machine_code_are_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.check_settings()
    monkeypatch.setenv(f"NUMBA_{name}", "0")
    with pytest.raises(RankfallError, match=rf"NUMBA_{name}: .*same keys; unset it.*engine: plain") as error:
        cache.check_settings()
    assert "\n" not in str(error.value)


def test_a_file_of_settings_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cache.check_settings()
    (tmp_path / ".numba_config.yaml").write_text("opt: 0\n")
    with pytest.raises(RankfallError, match=r"\.numba_config\.yaml tells numba .*same keys; remove it.*engine: plain"):
        cache.check_settings()


def test_settings_of_a_file_of_numba_have_a_folder_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    before = cache.digest()
    monkeypatch.setattr(cache.SETTINGS, "OPT", 1)
    assert cache.digest() != before


def test_what_keeps_kernels_from_running_is_no_cells_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every cell of the job had failed, each half of its stack after another attempt to compile."""
    raw = config(training={"epochs": 1}, grid={"seed": "0..3"}, compute={"engine": "auto"})
    cells, store = make_plan(raw).cells, Store(tmp_path / "store")
    assert {cell.engine for cell in cells} == {"fused"}
    monkeypatch.setenv("NUMBA_OPT", "0")
    cache.ready.cache_clear()
    with pytest.raises(RankfallError, match="NUMBA_OPT"):
        job.train_cells(cells, store, Settings(torch.device("cpu")), Progress(), lambda cell: {})
    assert not store.find_cells([cell.key for cell in cells])


@pytest.mark.slow
def test_kernels_that_are_damaged_are_compiled_anew(tmp_path: Path) -> None:
    """Cut off, they ended every job with an error of pickle."""
    train = "import test_engine as t; print(t.trained('fused', [7])[0].weights.double().sum().item())"
    paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    told = os.environ | {"XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": paths}

    def run() -> str:
        return subprocess.run(
            [sys.executable, "-c", train], env=told, capture_output=True, text=True, check=True
        ).stdout

    first = run()
    (code,) = tmp_path.rglob("*.nbc")
    whole = code.read_bytes()
    code.write_bytes(whole[: len(whole) // 2])
    assert run() == first
    (code,) = tmp_path.rglob("*.nbc")
    assert code.stat().st_size > len(whole) // 2
