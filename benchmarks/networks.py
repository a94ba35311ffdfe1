"""The networks that are measured, and how they are trained.

They are built without a configuration, since what reads one needs packages that a machine with a GPU may lack.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from rankfall import components
from rankfall.design import Architecture, Component, Training
from rankfall.nets.network import Shape, build
from rankfall.random_streams import stream
from rankfall.tasks._dataset import TRAIN, Dataset, Split
from rankfall.tasks.convex_hull import convex_hull
from rankfall.tasks.sorting import sorting
from rankfall.train import recipe
from rankfall.train.captured import Captured
from rankfall.train.data import Data
from rankfall.train.machine.gpu import MachinedOnGpu
from rankfall.train.machine.traced import program_of
from rankfall.train.members import Members, StepEngine
from rankfall.train.objectives._base import Objective, Samples

sys.path.append(str(Path(__file__).parent))  # attentions of a user, in users_attentions.py

CPU = torch.device("cpu")
WIDTH = 128  # the largest width for the machine on a GPU, as in rankfall/run/plan/engines.py
SPECIAL = 5  # number of the first symbol that is a word, in masked text
PARTS = {
    "SAN": {"residual": Component("none"), "mlp": Component("none")},
    "SAN+skip": {"residual": Component("add"), "mlp": Component("none")},
    "SAN+MLP": {"residual": Component("none"), "mlp_residual": Component("none"), "mlp": Component("gelu")},
    "transformer": {"residual": Component("add"), "mlp": Component("gelu")},
}


@dataclass(frozen=True)
class Setting:
    """A network, its training and the shape of its data."""

    name: str
    architecture: Architecture
    training: Training
    shape: Shape

    def with_parts(self, depth: int, parts: str) -> "Setting":
        """Return another depth and architecture for the same task."""
        changed = replace(self.architecture, name=parts, depth=depth, **PARTS[parts])
        return replace(self, name=f"{self.name} {parts} {depth}", architecture=changed)

    def resize(self, axis: str, size: int) -> "Setting":
        """Return the setting with another depth, width or length."""
        if axis == "length":
            return replace(self, shape=replace(self.shape, length=size))
        return replace(self, architecture=replace(self.architecture, **{axis: size}))

    def members(self, seeds: Sequence[int], device: torch.device, **training: object) -> Members:
        """Return members with these seeds. `training`: changed fields of the training."""
        changed = replace(self.training, **training)  # type: ignore[arg-type]
        return recipe.initial(self.architecture, self.shape, seeds, [changed] * len(seeds), device)

    def equal_members(self, members: int, device: torch.device, dropout: float) -> Members:
        """Return members with the same initial weights, which take less time to draw. Their dropout masks differ."""
        first = build(self.architecture, self.shape, 1, torch.float32)
        first.initialise([0])
        network = build(self.architecture, self.shape, members, torch.float32).to(device)
        with torch.no_grad():
            for target, value in zip(network.parameters(), first.parameters()):
                target.copy_(value.to(device).expand_as(target))
        optimizer = components.bound("optimizer", self.training.optimizer)
        hyperparameters = [recipe.hyperparameters_of(self.training)] * members
        return Members(network, range(members), optimizer, hyperparameters, dropout)

    def engines(self, device: torch.device) -> tuple[str, ...]:
        """Return the engines that serve this network on a GPU, or `plain` alone."""
        if device.type != "cuda":
            return ("plain",)
        return ("plain", "captured") if self.architecture.width > WIDTH else ("plain", "captured", "machine_gpu")

    def engine(self, name: str, members: Members) -> StepEngine | None:
        """Return the engine of this name for members; None for plain autograd."""
        training = replace(self.training, dtype=str(members.weights.dtype).removeprefix("torch."))
        if name == "machine":
            from rankfall.train.machine.engine import Machined  # needs numba

            program_of.cache_clear()  # each stack is traced, as in a new process
            return Machined(members, self.architecture, self.shape, training)
        if name == "machine_gpu":
            return MachinedOnGpu(members, self.architecture, self.shape, training)
        return Captured(recipe.make_draw(self.training)) if name == "captured" else None

    def objective(self) -> Objective:
        """Return the objective of the training."""
        return recipe.objective(self.training)

    def data(self, seeds: Sequence[int], device: torch.device, samples: int, dtype: str = "float32") -> Data:
        """Return the data sets of these seeds on a device."""
        datasets = [self.draw_data(seed, samples) for seed in seeds]
        return Data.from_datasets(datasets, getattr(torch, dtype), device)

    def draw_data(self, seed: int, samples: int) -> Dataset:
        """Draw the data set of a seed."""
        rng, test = stream(seed, "data"), max(1, samples // 5)
        if self.shape.targets == "hidden":
            words = torch.from_numpy(rng.integers(SPECIAL, self.shape.size_in, (samples, self.shape.length)))
            split = Split(words, words)
            return Dataset({TRAIN: split}, self.shape.size_in, self.shape.size_in, float("nan"), special=SPECIAL)
        if self.shape.inputs == "tokens":
            return sorting(rng, train=samples, test=test, length=self.shape.length)
        return convex_hull(rng, train=samples, test=test)

    def batch(self, members: int, device: torch.device) -> Samples:
        """Return one batch, the same for all members."""
        size = self.training.batch
        (batch,) = self.data([0], device, size).epoch([0], 0, size, shuffle=False)
        inputs = batch.inputs.expand(members, *batch.inputs.shape[1:]).contiguous()
        same = batch.targets is batch.inputs
        targets = inputs if same else batch.targets.expand(members, *batch.targets.shape[1:]).contiguous()
        return replace(batch, inputs=inputs, targets=targets, seeds=range(members))


def engine_step(setting: Setting, engine: str, count: int, dropout: float) -> Callable[[], object]:
    """Return a step of a stack on a processor."""
    setting = replace(setting, training=replace(setting.training, dropout=dropout))
    members = setting.members(range(count), CPU)
    members.engine = setting.engine(engine, members)
    objective, batch = setting.objective(), setting.batch(count, CPU)
    return lambda: members.step(objective, batch)


def define(name: str, shape: Shape, objective: str, batch: int, embedding: str, **parts: object) -> Setting:
    """Define a setting with dropout 0.1."""
    fields = {key: Component(part) if isinstance(part, str) else part for key, part in parts.items()}
    architecture = Architecture(name, embedding=Component(embedding), head=Component("classifier"), **fields)  # type: ignore[arg-type]
    training = Training(name, objective=Component(objective), epochs=1, batch=batch, dropout=0.1)
    return Setting(name, architecture, training, shape)


def gpu_settings() -> dict[str, Setting]:
    """Return the networks of `benchmarks/gpu.sh`. `mlm` and `mlm_gpu` are those of the presets with these names."""
    points, words = Shape("vectors", "classes", 10, 2, 2), Shape("tokens", "hidden", 64, 500, 500)
    settings = (
        define("sorting", Shape("tokens", "classes", 8, 10, 10), "classes", 30, "token", position="learned"),
        define("hull", points, "classes", 30, "coordinates", position="none", heads=3, width=84),
        define("mlm", words, "masked_tokens", 16, "token", position="rope", mlp="gelu", depth=2, width=32),
        define(
            "mlm_gpu", replace(words, size_in=8000, size_out=8000), "masked_tokens", 128, "token",
            position="rope", mlp="gelu", depth=6, heads=8, width=256,
        ),
    )  # fmt: skip
    return {setting.name: setting for setting in settings}


def processor_settings() -> dict[str, Setting]:
    """Return the networks of `engine/benchmarks/clean.py`, from Rankfall's parts and two attentions of a user."""
    sorted_symbols, points = Shape("tokens", "classes", 8, 10, 10), Shape("vectors", "classes", 10, 2, 2)
    kinds: dict[str, dict[str, object]] = {
        "SAN+skip": {},
        "transformer": {"mlp": "gelu"},
        "l2 + rms": {"normaliser": "l2", "norm": "rms", "mlp": "gelu"},
        "gau": {"attention": Component("gau", {"key_width": 24}), "norm": "rms"},
        "linear attention": {"attention": "linear", "mlp": "gelu"},
        "gate": {"attention": "users_attentions:Gated", "mlp": "gelu"},
        "delta rule": {"attention": "users_attentions:Delta", "mlp": "gelu"},
        "24 layers": {"mlp": "gelu", "depth": 24},
    }
    sizes: dict[str, object] = {"depth": 6, "width": 48, "heads": 2}
    settings = {
        name: define(name, sorted_symbols, "classes", 30, "token", **sizes | parts) for name, parts in kinds.items()
    }
    settings["hull"] = define("hull", points, "classes", 20, "coordinates", position="none", **sizes)
    words, text = Shape("tokens", "hidden", 32, 500, 500), {"depth": 1, "width": 32, "heads": 2}
    settings["mlm"] = define("mlm", words, "masked_tokens", 20, "token", position="rope", mlp="gelu", **text)
    return settings
