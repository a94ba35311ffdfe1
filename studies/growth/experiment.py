"""Train networks of components to predict characters, and measure what their layers have added, at birth and after training."""

from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rankfall import Architecture, Component, Network, Shape, build_network
from studies.common import Rows, Unit, generator
from thousandfold import AdamW, train_many

LENGTH, BATCH, SEEDS, WIDTH = 32, 8, 3, 32  # characters, texts a step, networks of a kind and depth, of the state
PLAIN: dict[str, Any] = {
    "norm": "layer",
    "norm_placement": "pre",
    "residual": "add",
    "init": {"name": "deepnorm", "beta": 1.0},
}
KINDS: dict[str, dict[str, Any]] = {
    "pre-norm": {},
    "peri-norm": {"block": "peri"},
    "1/sqrt(l)": {"norm": {"name": "by_depth", "of": "layer"}},
    "DeepNorm": {"norm_placement": "post", "residual": "deepnorm", "init": "deepnorm"},
    "hyper-connections": {"block": "hyper"},
}


def units(size: str) -> list[Unit]:
    """Return one unit for each kind and depth."""
    steps = {"tiny": 5, "tenth": 300, "full": 1000}[size]
    depths = {"tiny": (16,), "tenth": (8, 16, 32), "full": (8, 16, 32, 64)}[size]
    return [{"kind": kind, "depth": depth, "steps": steps} for depth in depths for kind in KINDS]


def measure(unit: Unit, device: str) -> Rows:
    """Train the networks of all seeds, and return their layers at birth and after training."""

    def batches(step: int, seed: int) -> tuple[Tensor, Tensor]:
        starts = torch.randint(len(text()) * 9 // 10, (BATCH,), generator=generator(1_000_003 * seed + step))
        return windows(starts)

    result = train_many(
        lambda seed: build(unit, seed),
        grade,
        batches,
        optimizer=AdamW(lr=1e-3, weight_decay=0.1, clip=1.0),
        seeds=range(SEEDS),
        steps=unit["steps"],
        device=device,
    )
    rows: Rows = []
    for seed in range(SEEDS):
        for when, module in (("birth", build(unit, seed)), ("trained", result.modules[seed])):
            loss = float(result.losses[-20:, seed].mean()) if when == "trained" else float(result.losses[0, seed])
            about = {"seed": seed, "when": when, "loss": loss, "engine": result.engine}
            rows += [about | row for row in measure_layers(module.to("cpu"))]
    return rows


class Single(nn.Module):
    """A network of components with one member, as an ordinary module of tokens (B, T)."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(self, tokens: Tensor) -> Tensor:
        scores: Tensor = self.network(tokens[None])[0]
        return scores


def build(unit: Unit, seed: int) -> Single:
    """Return an untrained network of a unit."""
    parts = PLAIN | {"mask": "causal", "mlp": "gelu", "embedding": "token", "head": "classifier"} | KINDS[unit["kind"]]
    plain = ("norm_placement",)
    fields: dict[str, Any] = {name: value if name in plain else Component.parse(value) for name, value in parts.items()}
    design = Architecture(name="growth", depth=unit["depth"], width=WIDTH, heads=2, mlp_width=2 * WIDTH, **fields)
    symbols = int(text().max()) + 1
    network = build_network(design, Shape("tokens", "classes", LENGTH, symbols, symbols), 1)
    network.initialise([seed])
    return Single(network)


def grade(module: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Return the mean cross-entropy of the next characters."""
    return F.cross_entropy(module(batch[0]).flatten(0, 1), batch[1].flatten())


def measure_layers(module: Single) -> Rows:
    """Return, by layer, the mean squares of the state, of what all layers so far have added and of what this one adds, and the norms of its
    weights."""
    network = module.network
    starts = torch.arange(len(text()) * 9 // 10 + 1, len(text()) - LENGTH - 1, 997)[:32]
    with torch.no_grad():
        states = [network.narrow(x).double() for x in network.states(windows(starts)[0][None])]
    rows = []
    for layer, (before, x) in enumerate(pairwise(states), 1):
        rows.append(
            {
                "layer": layer,
                "square": float(x.square().mean()),
                "added": float((x - states[0]).square().mean()),
                "increment": float((x - before).square().mean()),
                "weights": weight_norms(network.blocks[layer - 1]),
            }
        )
    return rows


def weight_norms(block: Any) -> float:
    """Return |W_V| |W_O| + |W_1| |W_2| in Frobenius norms."""
    mlp = [weight for name, weight in block.mlp.named_parameters() if name.endswith("weight")]
    norms = [
        float(weight.detach().norm()) for weight in (block.attention.value.weight, block.attention.output.weight, *mlp)
    ]
    return norms[0] * norms[1] + norms[2] * norms[3]


def windows(starts: Tensor) -> tuple[Tensor, Tensor]:
    """Return characters (B, T), and the next ones."""
    characters = text()[starts[:, None] + torch.arange(LENGTH + 1)]
    return characters[:, :-1], characters[:, 1:]


@cache
def text() -> Tensor:
    """Return the characters of CPython's documentation, numbered."""
    from pydoc_data.topics import topics  # type: ignore[import-untyped]

    codes = np.frombuffer("\n".join(topics.values()).encode("ascii", "replace"), np.uint8)
    return torch.from_numpy(np.unique(codes, return_inverse=True)[1].astype(np.int64))
