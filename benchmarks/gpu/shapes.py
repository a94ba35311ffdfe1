"""The networks that are measured, made without a configuration: what reads one needs packages that a machine with a GPU may not have."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

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
from rankfall.train.members import Members, StepEngine
from rankfall.train.objectives._base import Objective, Samples

WIDTH = 128  # the most that the machine on a GPU is for, as in rankfall/run/plan/engines.py
SPECIAL = 5  # symbols of masked text that stand for no word
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

    def at(self, depth: int, parts: str) -> "Setting":
        """Another depth and architecture of the same task."""
        changed = replace(self.architecture, name=parts, depth=depth, **PARTS[parts])
        return replace(self, name=f"{self.name} {parts} {depth}", architecture=changed)

    def members(self, seeds: Sequence[int], device: torch.device, **training: object) -> Members:
        own = replace(self.training, **training)  # type: ignore[arg-type]
        return recipe.initial(self.architecture, self.shape, seeds, [own] * len(seeds), device)

    def alike(self, members: int, device: torch.device, dropout: float) -> Members:
        """Members with the same initial weights, which thousands of seeds would take long to draw; their masks differ."""
        one = build(self.architecture, self.shape, 1, torch.float32)
        one.initialise([0])
        network = build(self.architecture, self.shape, members, torch.float32).to(device)
        with torch.no_grad():
            for to, value in zip(network.parameters(), one.parameters()):
                to.copy_(value.to(device).expand_as(to))
        t = self.training
        made = components.bound("optimizer", t.optimizer)
        return Members(network, range(members), made, [recipe.hyperparameters_of(t)] * members, dropout)

    def engines(self, device: torch.device) -> tuple[str, ...]:
        """Those that serve steps of this network on the device."""
        if device.type != "cuda":
            return ("plain",)
        return ("plain", "captured") if self.architecture.width > WIDTH else ("plain", "captured", "machine_gpu")

    def engine(self, name: str, members: Members) -> StepEngine | None:
        if name == "machine_gpu":
            own = replace(self.training, dtype=str(members.weights.dtype).removeprefix("torch."))
            return MachinedOnGpu(members, self.architecture, self.shape, own)
        return Captured(recipe.make_draw(self.training)) if name == "captured" else None

    def objective(self) -> Objective:
        return recipe.objective(self.training)

    def data(self, seeds: Sequence[int], device: torch.device, samples: int, dtype: str = "float32") -> Data:
        datasets = [self.drawn(seed, samples) for seed in seeds]
        return Data.from_datasets(datasets, getattr(torch, dtype), device)

    def drawn(self, seed: int, samples: int) -> Dataset:
        rng, test = stream(seed, "data"), max(1, samples // 5)
        if self.shape.targets == "hidden":
            words = torch.from_numpy(rng.integers(SPECIAL, self.shape.size_in, (samples, self.shape.length)))
            split = Split(words, words)
            return Dataset({TRAIN: split}, self.shape.size_in, self.shape.size_in, float("nan"), special=SPECIAL)
        task = sorting if self.shape.inputs == "tokens" else convex_hull
        return task(rng, train=samples, test=test)

    def batch(self, members: int, device: torch.device) -> Samples:
        """One batch, the same for all members."""
        size = self.training.batch
        data = self.data([0], device, size)
        (one,) = data.epoch([0], 0, size, shuffle=False)
        inputs = one.inputs.expand(members, *one.inputs.shape[1:]).contiguous()
        same = one.targets is one.inputs
        targets = inputs if same else one.targets.expand(members, *one.targets.shape[1:]).contiguous()
        return replace(one, inputs=inputs, targets=targets, seeds=range(members))


def setting(name: str, shape: Shape, objective: str, batch: int, embedding: str, **parts: object) -> Setting:
    architecture = Architecture(name, embedding=Component(embedding), head=Component("classifier"), **parts)  # type: ignore[arg-type]
    training = Training(name, objective=Component(objective), epochs=1, batch=batch, dropout=0.1)
    return Setting(name, architecture, training, shape)


def settings() -> dict[str, Setting]:
    none, rope, gelu = Component("none"), Component("rope"), Component("gelu")
    made = (
        setting("sorting", Shape("tokens", "classes", 8, 10, 10), "classes", 30, "token", position=Component("learned")),
        setting(
            "hull", Shape("vectors", "classes", 10, 2, 2), "classes", 30, "coordinates", position=none, heads=3, width=84
        ),
        setting(  # of workflow/presets/mlm.yaml
            "mlm", Shape("tokens", "hidden", 64, 500, 500), "masked_tokens", 16, "token", position=rope, mlp=gelu, depth=2, width=32
        ),
        setting(  # of workflow/presets/mlm_gpu.yaml
            "mlm_gpu", Shape("tokens", "hidden", 64, 8000, 8000), "masked_tokens", 128, "token",
            position=rope, mlp=gelu, depth=6, heads=8, width=256,
        ),
    )  # fmt: skip
    return {one.name: one for one in made}
