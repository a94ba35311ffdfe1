"""Guards that a program kept for other processes is the one that a trace would give, and that none is used for anything else."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from rankfall.design import Architecture, Component, Training
from rankfall.nets.network import Shape
from rankfall.random_streams import stream
from rankfall.train import recipe

pytest.importorskip("numba")
from rankfall.train.machine import traced
from rankfall.train.machine.engine import Machined
from rankfall.train.objectives._base import Samples
from thousandfold import disk

ENDS = {"embedding": Component("token"), "head": Component("classifier"), "depth": 1, "heads": 2, "width": 8}
NETWORK = Architecture("a", normaliser=Component("l2"), mlp=Component("gelu"), **ENDS)
TOKENS = Shape("tokens", "classes", 5, 7, 6)
TRAINING = Training("t", objective=Component("classes"), epochs=1, batch=6, dropout=0.1)
CODE = {"mylab/attn.py": "0123456789ab"}


@pytest.fixture(autouse=True)
def own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(disk, "cache_home", lambda: tmp_path)
    return tmp_path / "programs"


def traces(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A number for each trace from here on."""
    found: list[int] = []
    of_step = traced.graded_program
    monkeypatch.setattr(traced, "graded_program", lambda *given: found.append(1) or of_step(*given))
    return found


def gradient(
    network: Architecture = NETWORK, code: dict[str, str] = CODE, training: Training = TRAINING
) -> torch.Tensor:
    """As in a process of its own, which knows no program."""
    traced.program_of.cache_clear()
    members = recipe.initial(network, TOKENS, [0, 1], [training] * 2, torch.device("cpu"))
    members.engine = one = Machined(members, network, TOKENS, training, code)
    drawn = torch.from_numpy(stream(0, "batch").integers(6, size=(2, 6, 5)))
    one.passes(members, Samples(drawn, drawn.sort(-1).values, members.seeds, ("train", 0), 7, 6, learned=True))
    return members.grads.clone()


def test_another_process_reads_the_program_and_computes_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    found = traces(monkeypatch)
    first = gradient()
    assert len(found) == 1
    assert torch.equal(gradient(), first) and torch.equal(gradient(replace(NETWORK, name="b")), first)
    assert len(found) == 1


def test_whatever_differs_is_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    gradient()
    found = traces(monkeypatch)
    gradient(code={"mylab/attn.py": "another digest"})
    gradient(replace(NETWORK, normaliser=Component("exp")))
    gradient(training=replace(TRAINING, dropout=0.2))
    gradient(code={})
    gradient(code={})
    assert len(found) == 5


def test_a_damaged_file_counts_as_none(monkeypatch: pytest.MonkeyPatch, own_folder: Path) -> None:
    first = gradient()
    (path,) = own_folder.iterdir()
    whole = path.read_bytes()
    found = traces(monkeypatch)
    for damaged in (b"", whole[:-1], whole[:200] + bytes([whole[200] ^ 1]) + whole[201:]):
        path.write_bytes(damaged)
        assert torch.equal(gradient(), first)
    assert len(found) == 3 and path.read_bytes() == whole
    path.unlink()
    path.mkdir()
    assert torch.equal(gradient(), first) and len(found) == 4
