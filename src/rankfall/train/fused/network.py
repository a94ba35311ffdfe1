"""From a network and its training to what kernels are told: a form for each batch size, where parameters lie, what is fixed."""

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rankfall.design import Architecture, Training
from rankfall.nets.network import Network
from rankfall.nets.positions._base import Position
from rankfall.streams import words
from rankfall.train.fused import form as names
from rankfall.train.fused.form import Form, row_of

ACTIVATIONS = {"none": names.NO_MLP, "gelu": names.GELU, "relu": names.RELU}
LOSSES = {"classes": names.CLASSES, "values": names.VALUES, "masked_tokens": names.MASKED}
OPTIMIZERS = {"adam": names.ADAM, "adamw": names.ADAMW, "sgd": names.SGD}
PARTS = ("weights", "attention", "mlp")  # of a layer that dropout acts on


@dataclass(frozen=True)
class Described:
    """A network of K members whose parameters are views of `weights` (K, P)."""

    network: Network
    weights: Tensor
    architecture: Architecture
    training: Training

    def form(
        self,
        sequences: int,
        tokens: int,
        size_in: int,
        asked: int,
        constant: int | None,
        threshold: int,
        learned: bool,
    ) -> Form:
        """For batches of so many sequences, of each of which so many places are asked for, or all (0)."""
        a, block, embedding = self.architecture, self.network.blocks[0], self.network.embedding
        keep, branch = shares(block.residual)
        mlp_keep, mlp_branch = shares(block.mlp_residual)
        normed = isinstance(block.norm1, nn.Module)
        frozen: int | None = getattr(embedding, "frozen", None)
        head: Any = self.network.head
        return Form(
            learned=learned,
            sequences=sequences,
            tokens=tokens,
            row=row_of(tokens, sequences),
            pairs=sequences if tokens == 2 else 0,
            width=a.width,
            heads=block.attention.heads,
            head_width=block.attention.head_width,
            depth=a.depth,
            hidden=block.mlp.inner.weight.shape[-1] if block.mlp is not None else 1,
            activation=ACTIVATIONS[a.mlp.name],
            normed=normed,
            before=block.placement == "pre",
            keep=keep,
            branch=branch,
            mlp_keep=mlp_keep,
            mlp_branch=mlp_branch,
            eps=float(block.norm1.eps) if normed else 0.0,
            size_in=size_in,
            symbols=self.symbols,
            frozen=-1 if frozen is None else frozen,
            turned=type(self.network.position).rotate is not Position.rotate,
            added=self.biased or self.allowed(tokens) is not None,
            size_out=head.map.weight.shape[-1],
            asked=asked,
            loss=LOSSES[self.training.objective.name],
            constant=-1 if constant is None else constant,
            drop_scale=65536 / (65536 - threshold) if threshold else 0.0,
            threshold=threshold,
        )

    @property
    def symbols(self) -> int:
        """How many there are in the table of symbols; 0: inputs are vectors."""
        embedding: Any = self.network.embedding
        return embedding.table.weight.shape[1] if hasattr(embedding, "table") else 0

    @property
    def biased(self) -> bool:
        """Whether the position adds to scores."""
        return type(self.network.position).bias is not Position.bias

    def allowed(self, tokens: int) -> Tensor | None:
        found: Tensor | None = self.network.blocks[0].attention.mask(tokens, torch.device("cpu"))
        return found

    def place(self, parameter: Tensor) -> int:
        """Where a parameter begins in a member's row."""
        return (parameter.data_ptr() - self.weights.data_ptr()) // self.weights.element_size()

    def layers(self) -> np.ndarray:
        """(L, OF_LAYER)"""
        at = np.full((len(self.network.blocks), names.OF_LAYER), -1, np.int64)
        for row, block in zip(at, self.network.blocks):
            mixer = block.attention
            pairs = dict(zip((names.QUERY, names.KEY, names.VALUE), (mixer.query, mixer.key, mixer.value)))
            pairs |= {names.OUTPUT: mixer.output, names.NORM1: block.norm1, names.NORM2: block.norm2}
            if block.mlp is not None:
                pairs |= {names.INNER: block.mlp.inner, names.OUTER: block.mlp.outer}
            for where, made in pairs.items():
                row[where : where + 2] = self.pair(made)
        return at

    def ends(self) -> np.ndarray:
        """(OF_ENDS,)"""
        net, at = self.network, np.full(names.OF_ENDS, -1, np.int64)
        embedding: Any = net.embedding
        pairs = {names.NORM_IN: net.norm_in, names.NORM_OUT: net.norm_out, names.HEAD: getattr(net.head, "map", None)}
        pairs |= {names.FIRST: getattr(embedding, "map", getattr(embedding, "inner", None))}
        pairs |= {names.SECOND: getattr(embedding, "outer", None), names.PLACED: getattr(net.position, "map", None)}
        for where, made in pairs.items():
            at[where : where + 2] = self.pair(made)
        if hasattr(embedding, "table"):
            at[names.TABLE] = self.place(embedding.table.weight)
        if hasattr(net.position, "table"):
            at[names.SCORES if self.biased else names.PLACES] = self.place(net.position.table)
        return at

    def pair(self, made: Any) -> tuple[int, int]:
        """Where weight and bias of a map begin, or gain and bias of a norm; -1 where there are none."""
        if not isinstance(made, nn.Module):
            return -1, -1
        first: Any = made.gain if hasattr(made, "gain") else made.weight
        second: Any = made.bias
        return self.place(first), self.place(second)

    def fixed(self, tokens: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """What is added to states (T, D), if it is not learned; what is added to scores (H, keys, queries), -inf where masked; the
        entry of the table of scores that is added there; and by what queries and keys turn (2, d, T)."""
        a, position = self.architecture, self.network.position
        heads = self.network.blocks[0].attention.heads
        states = torch.zeros(0, a.width)
        if type(position).embed is not Position.embed and not hasattr(position, "table"):
            states = position.embed(torch.zeros(1, 1, tokens, a.width))[0, 0]
        scores = torch.zeros(heads, tokens, tokens)
        places = torch.zeros(heads, tokens, tokens, dtype=torch.int64)
        if self.biased and not hasattr(position, "table"):
            scores = position.bias(scores[None, None])[0, 0]
        elif self.biased:
            numbered = deepcopy(position)  # whose table holds the place of each entry
            count = position.table[0].numel()
            numbers = torch.arange(count, dtype=torch.float64).view(position.table[:1].shape)
            numbered.table = nn.Parameter(numbers, requires_grad=False)
            places = numbered.bias(torch.zeros(1, 1, heads, tokens, tokens, dtype=torch.float64))[0, 0].long()
        allowed = self.allowed(tokens)
        if allowed is not None:
            scores = scores.masked_fill(~allowed, -torch.inf)
        turn = lambda x: np.ascontiguousarray(x.detach().transpose(1, 2).numpy())  # noqa: E731
        return np.ascontiguousarray(states.detach().numpy()), turn(scores), turn(places), self.turns(tokens)

    def turns(self, tokens: int) -> np.ndarray:
        """What a position that rotates makes of queries and keys whose pairs are (1, 0) and whose last odd coordinate is 1: (2, d, T)."""
        size = self.network.blocks[0].attention.head_width
        x = torch.ones(1, 1, 1, tokens, size)
        x[..., size // 2 : size // 2 * 2] = 0
        found = torch.stack(self.network.position.rotate(x, x))[:, 0, 0, 0]  # (2, T, d)
        return np.ascontiguousarray(found.transpose(1, 2).numpy())

    def sites(self) -> np.ndarray:
        """(L + 1, 3): words that name the places of dropout."""
        blocks = [[words(f"blocks.{i}.{part}")[0] for part in PARTS] for i in range(self.architecture.depth)]
        return np.array([*blocks, [words("embedding")[0], words("head")[0], 0]], np.uint64)


def shares(residual: Any) -> tuple[float, float]:
    """What a residual keeps of its input and adds of its branch."""
    one, zero = torch.ones((), dtype=torch.float64), torch.zeros((), dtype=torch.float64)
    return float(residual(one, zero)), float(residual(zero, one))
