"""Guards that each member is trained as if it were alone in plain PyTorch, by each engine, and that what goes wrong is said."""

import math
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from known_modules import KNOWN, Known, cross_entropy, mlp, train_alone, vectors
from torch import Tensor, nn
from torch.nn import functional as F

from thousandfold import SGD, Adam, AdamW, explain, train_many
from thousandfold.__main__ import main

SEEDS, RATES, STEPS = (3, 4, 9), (1e-3, 1e-2, 3e-3), 5
MLP = KNOWN["mlp"]


def check_alone(known: Known, result: Any, bound: float, make: Any, clips: Any = (0.0, 0.0, 0.0)) -> None:
    for k, seed in enumerate(SEEDS):
        module, losses = train_alone(known, seed, STEPS, lambda weights, k=k: make(weights, k), clips[k])
        torch.testing.assert_close(result.losses[:, k], losses, rtol=bound, atol=bound)
        for one, other in zip(result.modules[k].parameters(), module.parameters(), strict=True):
            torch.testing.assert_close(one, other, rtol=bound, atol=bound)


@pytest.mark.parametrize("name", KNOWN)
def test_each_member_is_trained_as_if_it_were_alone(name: str) -> None:
    if name in ("bert", "gpt2"):
        pytest.importorskip("transformers")
    known = KNOWN[name]
    make = lambda weights, k: torch.optim.Adam(weights, lr=RATES[k])  # noqa: E731
    arguments = known.build, known.loss, known.batches
    result = train_many(*arguments, optimizer=Adam(lr=RATES), seeds=SEEDS, steps=STEPS)
    assert result.engine == known.engine
    assert result.losses.shape == (STEPS, 3) and result.diverged == [None] * 3
    check_alone(known, result, known.bound, make)
    for engine in ("stack", "loop")[known.engine == "loop" :]:
        other = train_many(*arguments, optimizer=Adam(lr=RATES), seeds=SEEDS, steps=STEPS, engine=engine)
        assert other.engine == engine
        check_alone(known, other, known.bound, make)


OPTIMIZERS: dict[str, tuple[Any, Any]] = {
    "sgd": (SGD(lr=RATES, momentum=0.9), lambda w, k: torch.optim.SGD(w, lr=RATES[k], momentum=0.9)),
    "decayed": (Adam(lr=1e-2, weight_decay=0.1), lambda w, k: torch.optim.Adam(w, lr=1e-2, weight_decay=0.1)),
    "adamw": (
        AdamW(lr=RATES, weight_decay=[0.0, 0.1, 0.2], betas=(0.8, 0.9)),
        lambda w, k: torch.optim.AdamW(w, lr=RATES[k], weight_decay=k / 10, betas=(0.8, 0.9)),
    ),
}


@pytest.mark.parametrize("engine", ["program", "stack"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_are_those_of_pytorch(name: str, engine: str) -> None:
    ours, theirs = OPTIMIZERS[name]
    result = train_many(MLP.build, MLP.loss, MLP.batches, optimizer=ours, seeds=SEEDS, steps=STEPS, engine=engine)
    check_alone(MLP, result, 1e-12, theirs)


@pytest.mark.parametrize("engine", ["program", "stack"])
def test_gradients_are_clipped_member_by_member(engine: str) -> None:
    clips = (0.01, 0.1, 100.0)
    result = train_many(
        MLP.build, MLP.loss, MLP.batches, optimizer=SGD(lr=1.0, clip=clips), seeds=SEEDS, steps=STEPS, engine=engine
    )
    check_alone(MLP, result, 1e-8, lambda weights, k: torch.optim.SGD(weights, lr=1.0), clips)


class Dropped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Linear(5, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.3, batch_first=True)

    def forward(self, x: Tensor) -> Any:
        return self.layer(self.embedding(x).unsqueeze(0)).squeeze(0)


def test_masks_of_dropout_are_the_same_by_every_engine() -> None:
    known = Known(Dropped, cross_entropy, vectors)
    results = [
        train_many(known.build, known.loss, known.batches, seeds=SEEDS, steps=3, engine=engine)
        for engine in ("program", "stack", "loop")
    ]
    assert not torch.allclose(results[0].losses[:, 0], results[0].losses[:, 1])
    for other in results[1:]:
        torch.testing.assert_close(results[0].losses, other.losses, rtol=1e-9, atol=1e-9)


def test_a_member_does_not_depend_on_the_others_and_goes_on_where_it_ended() -> None:
    arguments = MLP.build, MLP.loss, MLP.batches
    together = train_many(*arguments, seeds=SEEDS, steps=8)
    alone = train_many(*arguments, seeds=SEEDS[1:2], steps=8)
    assert torch.equal(together.losses[:, 1], alone.losses[:, 0])
    begun = train_many(*arguments, seeds=SEEDS, steps=3)
    ended = train_many(*arguments, seeds=SEEDS, steps=8, resume=begun.state)
    assert torch.equal(torch.cat([begun.losses, ended.losses]), together.losses)
    assert torch.equal(ended.state["weights"], together.state["weights"])


@pytest.mark.parametrize("engine", ["program", "stack", "loop"])
def test_a_member_that_diverges_is_frozen_and_the_others_go_on(engine: str) -> None:
    def batches(step: int, seed: int) -> tuple[Tensor, Tensor]:
        x, y = vectors(step, seed)
        return (x * math.nan if (step, seed) == (2, 4) else x), y

    result = train_many(MLP.build, MLP.loss, batches, seeds=SEEDS, steps=STEPS, engine=engine)
    assert result.diverged == [None, 2, None]
    known = Known(mlp, cross_entropy, vectors)
    module, _ = train_alone(known, 4, 2, lambda weights: torch.optim.Adam(weights, lr=1e-3))
    for one, other in zip(result.modules[1].parameters(), module.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)
    module, _ = train_alone(known, 9, STEPS, lambda weights: torch.optim.Adam(weights, lr=1e-3))
    for one, other in zip(result.modules[2].parameters(), module.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


def test_a_schedule_multiplies_all_rates() -> None:
    result = train_many(
        MLP.build, MLP.loss, MLP.batches, optimizer=SGD(lr=0.1, schedule=lambda step: float(step < 2)), steps=4
    )
    shorter = train_many(MLP.build, MLP.loss, MLP.batches, optimizer=SGD(lr=0.1), steps=2)
    assert torch.equal(result.state["weights"], shorter.state["weights"])


class Convolved(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 5, 1))

    def forward(self, x: Tensor) -> Tensor:
        y = x.unsqueeze(-1)
        return F.conv1d(y, self.weight).squeeze(-1)  # this line is named


def test_an_explanation_names_the_line_that_stands_in_the_way() -> None:
    known = Known(Convolved, cross_entropy, vectors)
    said = explain(known.build, known.loss, vectors(0, 0))
    line = next(i for i, text in enumerate(Path(__file__).read_text().splitlines(), 1) if "this line is named" in text)
    assert (
        said.engine == "stack"
        and "convolution" in said.reason
        and said.where.endswith(f"test_train_many.py, line {line}")
    )
    assert said.weights == 15 and said.seconds > 0
    assert explain(MLP.build, MLP.loss, vectors(0, 0)).reason == ""


def test_the_readme_runs() -> None:
    text = (Path(__file__).parents[1] / "README.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    result = names["result"]
    assert result.engine == "program" and result.losses.shape == (100, 16)
    assert result.metrics["accuracy"][-1].mean() > 0.9


class Reset(SGD):
    """Reads a number at one step, which no program can."""

    def step(self, weights: Tensor, grads: Tensor, slots: Any, lr: Tensor, decay: Any, t: int, scratch: Tensor) -> None:
        super().step(weights, grads, slots, lr, decay, t, scratch)
        if t == 5 and float(slots[0].abs().max()) > 0:
            slots[0].zero_()


def test_a_step_of_an_optimizer_that_cannot_be_traced_is_taken_by_pytorch() -> None:
    arguments = {"optimizer": Reset(lr=0.1, momentum=0.9), "seeds": SEEDS, "steps": 8}
    served = train_many(MLP.build, MLP.loss, MLP.batches, **arguments)
    wanted = train_many(MLP.build, MLP.loss, MLP.batches, **arguments, engine="stack")
    assert served.engine == "program"
    torch.testing.assert_close(served.losses, wanted.losses, rtol=1e-12, atol=1e-12)
    begun = train_many(MLP.build, MLP.loss, MLP.batches, **(arguments | {"steps": 4}))
    ended = train_many(MLP.build, MLP.loss, MLP.batches, **arguments, resume=begun.state)
    assert torch.equal(ended.state["weights"], served.state["weights"])


def test_running_statistics_are_those_of_training_alone() -> None:
    def normalised() -> nn.Module:
        return nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))

    known = Known(normalised, cross_entropy, vectors)
    result = train_many(known.build, known.loss, known.batches, optimizer=SGD(lr=RATES), seeds=SEEDS, steps=STEPS)
    assert result.engine == "stack" and "running statistics" in result.reason
    check_alone(known, result, 1e-9, lambda weights, k: torch.optim.SGD(weights, lr=RATES[k]))
    for k, seed in enumerate(SEEDS):
        module, _ = train_alone(known, seed, STEPS, lambda weights, k=k: torch.optim.SGD(weights, lr=RATES[k]))
        for one, other in zip(result.modules[k].buffers(), module.buffers(), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


STEP = """
import torch

def build(seed):
    return torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))

def loss(module, x):
    return module(x + torch.randn_like(x)).square().mean()

def batches(step, seed):
    return torch.ones(4, 5)
"""


def test_the_profile_of_a_file_names_its_operations(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    file = tmp_path / "mine.py"
    file.write_text(STEP)
    monkeypatch.setattr("sys.argv", ["thousandfold", "profile", f"{file}:build"])
    main()
    printed = capsys.readouterr().out
    assert "ms a member-step" in printed and "product with weights" in printed and "TANH" in printed
