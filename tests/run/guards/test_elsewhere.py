"""Guards that a component gives in every process, and whatever was computed there before, the same."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rankfall.design import Component
from rankfall.run.guards.elsewhere import OTHERS
from rankfall.run.guards.trial.setting import Surroundings
from rankfall.run.jobs import trials
from rankfall.run.store import Store

TABLE = """import torch
KNOWN = {}


def sharp(logits, *, slope: float = 1.0):
    length = logits.shape[-1]
    if KEY not in KNOWN:
        KNOWN[KEY] = slope * torch.arange(length)
    return (logits + KNOWN[KEY][:length].to(logits)).softmax(-1)
"""
WORDS = """import torch
from rankfall.tasks._dataset import Dataset, Split
INPUTS = "tokens"
TARGETS = "classes"


def drawn(rng):
    words = ORDER("the quick brown fox jumps over the lazy dog again and again".split())
    numbers = {word: number for number, word in enumerate(words)}
    text = torch.tensor([[numbers[word] for word in ("quick", "fox", "dog", "lazy")]] * 4)
    text = text[:, torch.from_numpy(rng.permutation(4))]
    return Dataset(dict.fromkeys(("train", "test"), Split(text, text)), size_in=12, size_out=12, chance=0.1)
"""


# Each keeps by the shape alone what follows from the first numbers that it sees, and what it adds cancels but for rounding.
ROUNDS = """import torch
from torch import nn
from rankfall.nets.primitives import constant
from rankfall.nets.dropout import no_dropout
from rankfall.train.objectives._base import Graded
from rankfall.train.objectives.values import values as usual
KNOWN = {}
ACCEPTS = "values"


def known(value):
    return KNOWN.setdefault(tuple(value.shape), value.detach().double().mean()).to(value.dtype)


def relative(logits):
    logits = logits - KNOWN.setdefault(logits.shape[-1], logits.detach().double().amax()).to(logits.dtype)
    return logits.softmax(-1)


def by_itself(logits):
    logits = logits - logits.amax(-1, keepdim=True)
    return logits.softmax(-1)


class Gain(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.gain = constant(sizes, 1, 1, sizes.width, value=1.0)

    def forward(self, x):
        return x * (self.gain + known(self.gain)) - x * known(self.gain)


class Sgd:
    slots = 0

    def step(self, weights, grads, slots, lr, decay, step, scratch):
        weights -= lr * (grads / known(grads) * known(grads) + decay * weights)


def graded(module, samples, drop=no_dropout):
    found = usual(module, samples, drop)
    first = known(found.loss)
    return Graded(found.loss + first - first, found.asked, found.sums)
"""


@pytest.fixture
def refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Of a component of `mylab_elsewhere.py`, which is written anew."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    count = iter(range(100))

    def refusal(kind: str, name: str, text: str, **options: object) -> str:
        (tmp_path / "mylab_elsewhere.py").write_text(text)
        sys.modules.pop("mylab_elsewhere", None)
        component = Component(f"mylab_elsewhere:{name}", dict(options))
        bench = trials.Bench(Store(tmp_path / f"store{next(count)}"), lines.append)
        return bench.refusal(kind, component, Surroundings())

    lines: list[str] = []
    yield refusal
    assert lines == []


@pytest.mark.long
def test_a_table_that_another_option_or_length_would_change_is_refused(refusal: Callable[..., str]) -> None:
    """One architecture had the numbers of another, which was tried, trained or measured before it in the same process."""
    by_length, by_both = TABLE.replace("KEY", "length"), TABLE.replace("KEY", "(length, slope)")
    said = "mylab_elsewhere.py, sharp) gives something else in another process, with slope = 1.75"
    assert said in refusal("normaliser", "sharp", by_length)
    assert "in another process, with slope = 1.0" in refusal("normaliser", "sharp", by_length, slope=3.0)
    assert refusal("normaliser", "sharp", by_both) == ""
    for_ever = TABLE.replace("slope: float = 1.0", "slope: str = 'a'").replace("slope * ", "").replace("KEY", "slope")
    for_ever = for_ever.replace("torch.arange(length)", "torch.ones(64) / length * torch.arange(64)")
    assert "in another process, for one token more" in refusal("normaliser", "sharp", for_ever)


def test_data_by_the_order_of_a_set_are_refused(refusal: Callable[..., str]) -> None:
    """Under one key each process had drawn other data."""
    assert "mylab_elsewhere.py, drawn) gives something else in another process, as it is used" in refusal(
        "task", "drawn", WORDS.replace("ORDER", "set")
    )
    assert (
        refusal(
            "task",
            "drawn",
            WORDS.replace("ORDER", "sorted").replace("sorted(", "sorted(set(").replace(".split())", ".split()))"),
        )
        == ""
    )


@pytest.mark.long
def test_one_other_process_serves_all(refusal: Callable[..., str]) -> None:
    assert refusal("normaliser", "sharp", TABLE.replace("KEY", "(length, slope)")) == ""
    (other,) = OTHERS
    other.close()
    assert refusal("normaliser", "sharp", TABLE.replace("KEY", "(length, slope)")) == ""
    assert len(OTHERS) == 1 and OTHERS[0] is not other


@pytest.mark.parametrize(
    ("kind", "name"), [("normaliser", "relative"), ("norm", "Gain"), ("optimizer", "Sgd"), ("objective", "graded")]
)
def test_what_is_kept_is_refused_where_it_changes_but_the_last_bits(
    refusal: Callable[..., str], kind: str, name: str
) -> None:
    """A seed would end in other bits where another was trained before it in the same process."""
    said = f"mylab_elsewhere.py, {name}) gives other bits after it was given other numbers of the same shape; keep nothing between calls"
    assert said in refusal(kind, name, ROUNDS)
    if kind == "normaliser":
        assert refusal(kind, "by_itself", ROUNDS) == ""


@pytest.mark.parametrize(
    ("option", "fact", "body", "said"),
    [
        ("near: float = 0.25", 'LIMITS = {"near": (0.0, 0.5)}', "near", "with near = 0.2"),
        ("near: float = 0.25", "", "near if near < 0.3 else [][0]", "as it is used"),
        ("near: float | None = None", "", "near or 0.25", "with near = 1"),
        ("near: list[float] = [0.25, 0.5]", "", "near[0]", "with near = [0.625, 0.5]"),
        ("near: int = 4", "", "near if near % 2 == 0 else [][0]", "as it is used"),
        ('near: Literal["low", "high"] = "low"', "", '{"low": 0.25, "high": 0.5}[near]', "with near = high"),
    ],
)
def test_every_option_is_tried_with_a_value_that_it_may_have(
    refusal: Callable[..., str], option: str, fact: str, body: str, said: str
) -> None:
    """A table by length alone gave one architecture the numbers of another: its option was tried where it is refused, or not at all."""
    text = TABLE.replace("slope: float = 1.0", option).replace("slope * ", f"({body}) * ")
    text = text.replace("import torch", f"from typing import Literal\n\nimport torch\n{fact}")
    assert f"gives something else in another process, {said};" in refusal(
        "normaliser", "sharp", text.replace("KEY", "length")
    )
    assert refusal("normaliser", "sharp", text.replace("KEY", "(length, str(near))")) == ""
