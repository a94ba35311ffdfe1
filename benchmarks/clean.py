"""The same networks as a PyTorch user would write them, one at a time: what ours are measured against.

    python -m benchmarks.clean --parts SAN+skip --depth 6 --seed 0 --epochs 10 --out result.json

trains one sorting network from its data to its test accuracy, as a runner that starts one process a configuration does, and evaluates it
as often as Rankfall does: the test set after each epoch, both sets at the end. Nothing here is Rankfall's. The masked language model has
no rotation of queries and keys, which ours has: the comparison is in its favour.
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

LAYER_NORM = partial(nn.LayerNorm, eps=1e-12)


@dataclass(frozen=True)
class Shape:
    """Of a network and its batches."""

    depth: int
    width: int
    heads: int
    length: int
    batch: int
    inputs: int  # symbols, or coordinates
    classes: int
    tokens: bool = True
    places: bool = False  # a learned vector for each
    residual: bool = True
    mlp: bool = False
    masked: bool = False  # hides and asks for 15% of the tokens
    attention: Callable[[int, int, float], nn.Module] | None = None  # of width, heads, dropout; None: softmax
    norm: Callable[[int], nn.Module] = LAYER_NORM


NETWORKS = {
    "sorting": Shape(6, 48, 2, 8, 30, 10, 10, places=True),
    "hull": Shape(6, 48, 2, 10, 20, 2, 2, tokens=False),
    "mlm": Shape(1, 32, 2, 32, 20, 500, 500, mlp=True, masked=True),
}
PARTS = {"SAN": (False, False), "SAN+skip": (True, False), "SAN+MLP": (False, True), "transformer": (True, True)}


class Attention(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.output = (nn.Linear(width, width) for _ in range(4))
        self.drop = nn.Dropout(dropout)

    def normalise(self, scores: Tensor) -> Tensor:
        return scores.softmax(-1)

    def mix(self, x: Tensor, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Of x (B, T, D) and its heads' (B, H, T, d)."""
        weights = self.normalise(q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5)
        return self.drop(weights) @ v

    def forward(self, x: Tensor) -> Tensor:
        split = (x.shape[0], x.shape[1], self.heads, x.shape[2] // self.heads)
        q, k, v = (m(x).view(split).transpose(1, 2) for m in (self.query, self.key, self.value))  # (B, H, T, d)
        return self.output(self.mix(x, q, k, v).transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, shape: Shape, dropout: float, mlp_residual: bool) -> None:
        super().__init__()
        width = shape.width
        self.residual, self.mlp_residual = shape.residual, mlp_residual
        self.attention = (shape.attention or Attention)(width, shape.heads, dropout)
        self.drop, self.norm = nn.Dropout(dropout), shape.norm(width)
        if shape.mlp:
            self.mlp = nn.Sequential(
                nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(dropout)
            )
            self.norm2 = shape.norm(width)
        self.has_mlp = shape.mlp

    def forward(self, x: Tensor) -> Tensor:
        found = self.drop(self.attention(x))
        x = self.norm(x + found if self.residual else found)
        if not self.has_mlp:
            return x
        found = self.mlp(x)
        return self.norm2(x + found if self.mlp_residual else found)


class Network(nn.Module):
    def __init__(self, shape: Shape, dropout: float) -> None:
        super().__init__()
        width = shape.width
        self.embedding: nn.Module = (
            nn.Embedding(shape.inputs, width)
            if shape.tokens
            else nn.Sequential(nn.Linear(shape.inputs, width), nn.GELU(), nn.Linear(width, width))
        )
        self.places = nn.Parameter(torch.randn(shape.length, width)) if shape.places else None
        self.norm, self.drop = shape.norm(width), nn.Dropout(dropout)
        self.blocks = nn.Sequential(*(Block(shape, dropout, shape.residual) for _ in range(shape.depth)))
        self.head = nn.Linear(width, shape.classes)

    def states(self, inputs: Tensor) -> Tensor:
        x = self.embedding(inputs)
        return self.blocks(self.drop(self.norm(x if self.places is None else x + self.places)))  # type: ignore[no-any-return]

    def forward(self, inputs: Tensor) -> Tensor:
        return self.head(self.states(inputs))  # type: ignore[no-any-return]


def masked_loss(net: Network, shape: Shape, inputs: Tensor) -> Tensor:
    """Only the states of what is asked for are read out."""
    asked = torch.rand(inputs.shape) < 0.15
    scores = net.head(net.states(inputs.masked_fill(asked, 4))[asked])
    return functional.cross_entropy(scores, inputs[asked])


def compiled_step(short: str, dropout: float) -> Callable[[], None]:
    """The same by code that PyTorch compiles for it, once a process and network, for which it needs a compiler of C++."""
    return step(short, dropout, torch.compile)


def step(short: str, dropout: float, prepared: Callable[[nn.Module], Any] = lambda net: net) -> Callable[[], None]:
    """A function that trains one network one step on one batch."""
    return step_of(NETWORKS[short], dropout, prepared)


def step_of(shape: Shape, dropout: float, prepared: Callable[[nn.Module], Any] = lambda net: net) -> Callable[[], None]:
    module = Network(shape, dropout).train()
    net = prepared(module)
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-3)
    size = (shape.batch, shape.length)
    inputs = (
        torch.randint(5 if shape.masked else 0, shape.inputs, size) if shape.tokens else torch.rand(*size, shape.inputs)
    )
    targets = torch.randint(shape.classes, size)

    def one() -> None:
        optimizer.zero_grad(set_to_none=True)
        if shape.masked:
            masked_loss(net, shape, inputs).backward()  # type: ignore[no-untyped-call]
        else:
            functional.cross_entropy(net(inputs).flatten(0, 1), targets.flatten()).backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    return one


def train(parts: str, depth: int, seed: int, epochs: int) -> dict[str, list[float]]:
    """Loss and accuracy of a sorting network, trained on 1,000 sequences in batches of 30: on the test set after each epoch, and on both
    sets at the end."""
    torch.manual_seed(seed)
    residual, mlp = PARTS[parts]
    net = Network(Shape(depth, 48, 2, 8, 30, 10, 10, places=True, residual=residual, mlp=mlp), dropout=0.0)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    inputs, test = torch.randint(10, (1000, 8)), torch.randint(10, (200, 8))
    targets, course = inputs.sort(1).values, []
    for _ in range(epochs):
        net.train()
        for index in torch.randperm(len(inputs)).split(30):
            optimizer.zero_grad(set_to_none=True)
            functional.cross_entropy(net(inputs[index]).flatten(0, 1), targets[index].flatten()).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        course += evaluated(net, test)
    return {"course": course, "train": evaluated(net, inputs), "test": evaluated(net, test)}


@torch.no_grad()
def evaluated(net: Network, inputs: Tensor) -> list[float]:
    """Loss and accuracy on sequences to sort."""
    targets, outputs = inputs.sort(1).values, net.eval()(inputs)
    loss = functional.cross_entropy(outputs.flatten(0, 1), targets.flatten())
    return [float(loss), float((outputs.argmax(-1) == targets).float().mean())]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--parts", choices=PARTS, required=True)
    for name in ("depth", "seed", "epochs"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    torch.set_num_threads(1)
    args.out.write_text(json.dumps(train(args.parts, args.depth, args.seed, args.epochs)))


if __name__ == "__main__":
    main()
