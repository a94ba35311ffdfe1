"""Guards what the machine keeps for other processes: machine code is not run where a byte of it has changed; a program is the one that a
trace would give, and none is used for anything else."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from rankfall.design import Architecture, Component, Training
from rankfall.nets.network import Shape
from rankfall.random_streams import stream
from rankfall.train import recipe
from rankfall.train.objectives._base import Samples

pytest.importorskip("numba")
import numba

from rankfall.train.machine import traced
from rankfall.train.machine.engine import Machined
from thousandfold import cache, disk, runtime


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


ENDS = {"embedding": Component("token"), "head": Component("classifier"), "depth": 1, "heads": 2, "width": 8}
NETWORK = Architecture("a", normaliser=Component("l2"), mlp=Component("gelu"), **ENDS)
TOKENS = Shape("tokens", "classes", 5, 7, 6)
TRAINING = Training("t", objective=Component("classes"), epochs=1, batch=6, dropout=0.1)
CODE = {"mylab/attn.py": "0123456789ab"}


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return the folder of programs."""
    monkeypatch.setattr(disk, "cache_home", lambda: tmp_path)
    return tmp_path / "programs"


def traces(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that grows by a number with each trace."""
    numbers: list[int] = []
    trace = traced.graded_program
    monkeypatch.setattr(traced, "graded_program", lambda *given: numbers.append(1) or trace(*given))
    return numbers


def gradient(
    network: Architecture = NETWORK, code: dict[str, str] = CODE, training: Training = TRAINING
) -> torch.Tensor:
    """Return a gradient as in a process of its own, which knows no program."""
    traced.program_of.cache_clear()
    members = recipe.initial(network, TOKENS, [0, 1], [training] * 2, torch.device("cpu"))
    members.engine = engine = Machined(members, network, TOKENS, training, code)
    drawn = torch.from_numpy(stream(0, "batch").integers(6, size=(2, 6, 5)))
    engine.passes(members, Samples(drawn, drawn.sort(-1).values, members.seeds, ("train", 0), 7, 6, learned=True))
    return members.grads.clone()


@pytest.mark.usefixtures("programs")
def test_another_process_reads_the_program_and_computes_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    traced = traces(monkeypatch)
    first = gradient()
    assert len(traced) == 1
    assert torch.equal(gradient(), first) and torch.equal(gradient(replace(NETWORK, name="b")), first)
    assert len(traced) == 1


@pytest.mark.usefixtures("programs")
def test_whatever_differs_is_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    gradient()
    traced = traces(monkeypatch)
    gradient(code={"mylab/attn.py": "another digest"})
    gradient(replace(NETWORK, normaliser=Component("exp")))
    gradient(training=replace(TRAINING, dropout=0.2))
    gradient(code={})
    gradient(code={})
    assert len(traced) == 5


def test_a_damaged_file_counts_as_none(monkeypatch: pytest.MonkeyPatch, programs: Path) -> None:
    first = gradient()
    (path,) = programs.iterdir()
    whole = path.read_bytes()
    traced = traces(monkeypatch)
    for damaged in (b"", whole[:-1], whole[:200] + bytes([whole[200] ^ 1]) + whole[201:]):
        path.write_bytes(damaged)
        assert torch.equal(gradient(), first)
    assert len(traced) == 3 and path.read_bytes() == whole
    path.unlink()
    path.mkdir()
    assert torch.equal(gradient(), first) and len(traced) == 4
