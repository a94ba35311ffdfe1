"""Guards the machine code that the machine keeps: not run where a byte of it has changed, made with numba's usual settings alone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

numba = pytest.importorskip("numba")
from thousandfold import cache, runtime  # noqa: E402


def kept(folder: Path) -> Path:
    """A file as numba leaves it."""
    path = folder / "step.nbc"
    path.write_bytes(b"machine code")
    return path


@pytest.mark.parametrize("now", [b"machine Code", b"", None])
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


def test_machine_code_is_kept_under_the_text_that_it_was_made_of(monkeypatch: pytest.MonkeyPatch) -> None:
    before, text = cache.digest(runtime.SOURCES), cache.text_of
    name = "thousandfold.kernels.products"
    monkeypatch.setattr(cache, "text_of", lambda one: text(one) + b"#" * (one == name))
    assert cache.digest(runtime.SOURCES) != before
    monkeypatch.setattr(cache, "text_of", text)
    assert cache.digest(runtime.SOURCES) == before


TRAIN = """
import hashlib, test_engine as t
print(hashlib.sha256(t.trained((7,)).weights.detach().numpy().tobytes()).hexdigest())
"""


def in_a_process(code: str, **environment: str) -> str:
    paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    variables = os.environ | environment | {"PYTHONPATH": paths}
    done = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.slow
def test_kernels_that_are_damaged_are_compiled_anew(tmp_path: Path) -> None:
    """Cut off, they ended every job with an error of pickle. And the first process, which compiles, computes the bits of all others, which
    read: one that compiles for itself finds functions as they were compiled alone, and sums in another order."""
    first = in_a_process(TRAIN, XDG_CACHE_HOME=str(tmp_path))
    (code,) = tmp_path.rglob("*.nbc")
    whole = code.read_bytes()
    code.write_bytes(whole[: len(whole) // 2])
    assert in_a_process(TRAIN, XDG_CACHE_HOME=str(tmp_path)) == first
    (code,) = tmp_path.rglob("*.nbc")
    assert code.stat().st_size > len(whole) // 2
    assert in_a_process(TRAIN) == first
