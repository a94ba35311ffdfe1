"""Kernels for a GPU, compiled for a processor: one block whose threads take turns (`emulated.h`)."""

import ctypes
import functools
import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

pytest.importorskip("numba")
from rankfall.train.machine.gpu import MachinedOnGpu
from thousandfold.gpu import engine, pointwise
from thousandfold.gpu.compiled import Launch

HEADER = Path(__file__).with_name("emulated.h")
THREADS = 64
ENTRY = """
static const void* given[16];
static long long sizes[16];
extern "C" void run_steps(int order, const void** pointers, const long long* numbers) {
  for (int i = 0; i < 16; ++i) given[i] = pointers[i], sizes[i] = numbers[i];
  run_block(THREADS, order, [] {
    steps((const int*)given[0], sizes[0], sizes[1], (const long long*)given[1], (real*)given[2], sizes[2], sizes[3], sizes[4],
          (long long*)given[3]);
  });
}
"""


@functools.cache
def folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="rankfall-kernels-"))


@functools.cache
def compiled(text: str) -> Any:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("needs g++")
    source = f'#include "{HEADER}"\n{text}{ENTRY}'
    at = folder() / hashlib.sha256(source.encode()).hexdigest()[:16]
    at.with_suffix(".cpp").write_text(source)
    flags = ["-std=c++20", "-O0", "-w", "-shared", "-fPIC", "-ffp-contract=off"]
    subprocess.run([compiler, *flags, "-o", f"{at}.so", f"{at}.cpp"], check=True)
    return ctypes.CDLL(f"{at}.so").run_steps


def load(text: str, name: str, device: torch.device, order: int = 1) -> Launch:
    """As `load_kernel`; the threads run in ascending order, or with `order` -1 in descending."""
    assert name == "steps"
    run = compiled(text)

    def launch(grid: Any, block: Any, args: list[Any]) -> None:
        assert grid == (1, 1, 1) and block == (THREADS, 1, 1)
        pointers = (ctypes.c_void_p * 16)(*(x.data_ptr() for x in args if isinstance(x, Tensor)))
        numbers = (ctypes.c_longlong * 16)(*(x for x in args if isinstance(x, int)))
        run(order, pointers, numbers)

    return launch


class EmulatedEngine(engine.GpuEngine):
    device_type = "cpu"
    load = staticmethod(load)


class BackwardsEngine(EmulatedEngine):
    load = staticmethod(functools.partial(load, order=-1))


class Emulated(MachinedOnGpu):
    device_type = "cpu"
    kind = EmulatedEngine


class Backwards(Emulated):
    kind = BackwardsEngine


def emulate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of so few threads that several have to share what one has on a GPU, and so little shared memory that it does not suffice."""
    monkeypatch.setattr(engine, "THREADS", THREADS)
    monkeypatch.setattr(engine, "SHARED", 1024)
    for name, least in (("ROWS", 2), ("ROW", 4), ("COLUMNS", 4)):
        monkeypatch.setattr(pointwise, name, least)
