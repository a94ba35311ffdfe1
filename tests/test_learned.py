"""Guards what is learned of a user's components by calling them, and when it is learned anew."""

import os
from pathlib import Path

import pytest

from rankfall import components
from rankfall.errors import RankfallError
from rankfall.run.config.rules import task_facts

LAB = '''
import torch
from rankfall import Dataset, Linear, Position, split_samples
from helper_lab import SCALE
from rankfall.nets.attentions.multihead import Multihead


def parity(rng, *, train: int = 20, test: int = 5, length: int = 12):
    bits = torch.from_numpy(rng.integers(2, size=(train + test, length)))
    return Dataset(split_samples(bits, bits.cumsum(1) % 2, train), size_in=2, size_out=2)


def regression(rng):
    points = torch.from_numpy(rng.normal(size=(20, 6, 3)))
    return Dataset(split_samples(points, points.sum(-1, keepdim=True), 15), size_in=3, size_out=1)


def needy(rng, *, length: int):
    return parity(rng, length=length)


class Mixing(torch.nn.Module):
    """Scores, a normaliser and a mask, but neither heads of its own nor positions in queries."""

    def __init__(self, sizes, position, normaliser, mask, site):
        super().__init__()
        self.query = Linear(sizes, sizes.width, sizes.width, "query")
        self.position, self.normaliser, self.mask = position, normaliser, mask

    def weights(self, x):
        scores = self.position.bias((self.query(x) @ x.transpose(-1, -2)).unsqueeze(2) * SCALE)
        return self.normaliser(scores.masked_fill(~self.mask(x.shape[2], x.device), -torch.inf))

    def forward(self, x, drop):
        return self.weights(x).squeeze(2) @ x


class Distance(Position):
    def __init__(self, sizes):
        super().__init__()

    def bias(self, logits):
        places = torch.arange(logits.shape[-1], dtype=logits.dtype)
        return logits - (places.unsqueeze(1) - places).abs()


class Table(Position):
    """One vector a place, of the trained length alone; and a term that depends on the scores themselves."""

    def __init__(self, sizes):
        super().__init__()
        self.places = torch.arange(sizes.length * 1.0).unsqueeze(1)

    def embed(self, x):
        return x + self.places[: x.shape[2]]

    def bias(self, logits):
        return 2 * logits


class Usual(torch.nn.Module):
    """As the block `attention`, written anew."""

    def __init__(self, *, attention, mlp, residual, mlp_residual, norm1, norm2, placement, site):
        super().__init__()
        self.attention, self.mlp, self.residual, self.mlp_residual = attention, mlp, residual, mlp_residual
        self.norm1, self.norm2, self.placement = norm1, norm2, placement

    def mix(self, x, drop):
        return self.attention(self.norm1(x), drop)

    def forward(self, x, drop):
        x = self.residual(x, self.mix(x, drop))
        return self.mlp_residual(x, self.mlp(self.norm2(x)))


class Twice(Usual):
    def mix(self, x, drop):
        return self.attention(super().mix(x, drop), drop)


class Back(Usual):
    """Each token reads the next one, past the attention."""

    def mix(self, x, drop):
        return super().mix(x, drop) + torch.cat([x[:, :, 1:], 0 * x[:, :, :1]], 2)


class Gated(Multihead):
    """Value maps that leave out a gate of the contexts."""

    def contexts(self, weights, x):
        return super().contexts(weights, x) * 0.5


def copying(rng):
    words = torch.from_numpy(rng.integers(1, 5, size=(20, 6)))
    return Dataset(split_samples(words, words.clone(), 15), size_in=5, size_out=5, special=1)


class Two:
    def __init__(self, sizes):
        self.width = sizes.width

    def add(self, x):
        return torch.cat([x[:, :, :1], x[:, :, :1], x], 2)

    def strip(self, x):
        return x[:, :, 2:]
'''


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file of a user's module, which imports another one."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "helper_lab.py").write_text("SCALE = 0.5\n")
    (tmp_path / "learn_lab.py").write_text(LAB)
    return tmp_path / "learn_lab.py"


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "name", "facts"),
    [
        ("task", "parity", {"INPUTS": "tokens", "TARGETS": "classes"}),
        ("task", "regression", {"INPUTS": "vectors", "TARGETS": "values"}),
        (
            "attention",
            "Mixing",
            {"PROVIDES": ["weights"], "OFFERS": ["scores"], "IGNORES": ["heads", "head_width"], "BREAKS": []},
        ),
        (
            "position",
            "Distance",
            {"TOUCHES": ["scores"], "ADMITS": "any", "PROVIDES": ["bias by offset"], "BREAKS": []},
        ),
        ("position", "Table", {"TOUCHES": ["states", "scores"], "ADMITS": "trained", "PROVIDES": [], "BREAKS": []}),
        ("sentinels", "Two", {"COUNT": 2}),
        ("block", "Usual", {"BREAKS": [], "TOKENWISE": True}),
        ("block", "Twice", {"BREAKS": ["blocks", "weights", "heads", "values"], "TOKENWISE": True}),
        ("block", "Back", {"BREAKS": ["blocks"], "TOKENWISE": False}),
    ],
)
def test_what_calling_a_component_shows(lab: Path, kind: str, name: str, facts: dict[str, object]) -> None:
    assert dict(components.facts_of(kind, f"learn_lab:{name}")) == facts


@pytest.mark.long
def test_it_is_learned_again_when_a_file_that_it_imports_changes(lab: Path) -> None:
    def learned() -> tuple[dict[str, object], set[int]]:
        os.utime(lab)  # so that this process looks again
        components.prepare_descriptions([("task", "learn_lab:parity")])
        found = dict(components.facts_of("task", "learn_lab:parity"))
        return found, {path.stat().st_mtime_ns for path in (lab.parent / "cache").rglob("described/*")}

    first = learned()
    assert learned() == first  # from the cache, whose file stays as it was
    (lab.parent / "helper_lab.py").write_text("SCALE = 0.25\n")
    assert learned()[1] != first[1]


@pytest.mark.long
def test_value_maps_that_leave_out_a_gate_are_not_provided(lab: Path) -> None:
    assert components.facts_of("attention", "learn_lab:Gated")["PROVIDES"] == ["heads", "weights"]


@pytest.mark.long
@pytest.mark.own_process
def test_a_failure_is_not_cached(lab: Path) -> None:
    (lab.parent / "helper_lab.py").write_text("SCALE = int('six')\n")
    with pytest.raises(RankfallError, match=r"helper_lab.py, line 1: cannot be imported: ValueError.*six"):
        components.describe("task", "learn_lab:parity")
    (lab.parent / "helper_lab.py").write_text("SCALE = 6\n")
    assert components.facts_of("task", "learn_lab:parity")["INPUTS"] == "tokens"


@pytest.mark.long
def test_a_task_whose_targets_are_its_inputs_has_to_say_what_they_are(lab: Path) -> None:
    with pytest.raises(RankfallError, match="its targets are its inputs: say TARGETS = 'hidden'"):
        task_facts("learn_lab:copying", "tasks.mine")


@pytest.mark.long
def test_a_declaration_takes_precedence_and_a_failure_says_why(lab: Path) -> None:
    with pytest.raises(RankfallError, match=r"fails when it is called.*TypeError: needy\(\) missing"):
        task_facts("learn_lab:needy", "tasks.mine")
    lab.write_text(LAB + '\nINPUTS = "tokens"\nTARGETS = "hidden"\n')
    assert task_facts("learn_lab:parity", "tasks.mine")["TARGETS"] == "hidden"
