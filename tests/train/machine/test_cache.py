"""Guards the machine code that the machine keeps: not run where a byte of it has changed, made with numba's usual settings alone."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

numba = pytest.importorskip("numba")
from thousandfold import cache, runtime  # noqa: E402


def test_kept_code_is_whole_or_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert not runtime.is_compiled("float32")
    square = numba.njit(lambda x: x * x)
    assert not cache.is_kept(square, (3,), tmp_path)
    assert square(3) == 9 and cache.is_kept(square, (3,), tmp_path) and not cache.is_kept(square, (3.0,), tmp_path)
    (path,) = tmp_path.glob("*.nbc")
    whole = path.read_bytes()
    for damaged in (whole[:-1] + bytes([whole[-1] ^ 1]), whole[:100], b""):
        path.write_bytes(damaged)
        assert not cache.is_kept(square, (3,), tmp_path)


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
    told = os.environ | environment | {"PYTHONPATH": paths}
    done = subprocess.run([sys.executable, "-c", code], env=told, capture_output=True, text=True)
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


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="names of processors of x86")
def test_processors_with_vectors_of_four_numbers() -> None:
    """Compiled anew. `.ci/run` has a stage for those of eight."""
    check = (
        "import test_engine as t; from thousandfold.kernels.vector import LANES; "
        "assert LANES == 4, LANES; t.test_gradients_are_autograds_in_random_networks(0); "
        "t.test_gradients_are_autograds_for_vectors_and_values()"
    )
    in_a_process(check, NUMBA_CPU_NAME="x86-64", NUMBA_CPU_FEATURES="+sse2")
