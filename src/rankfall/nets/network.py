"""A network for K members at once: embedding, blocks, head, assembled from the components that an architecture names."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from inspect import isclass, signature
from typing import Any

import torch
from torch import Tensor, nn

from rankfall import components
from rankfall.design import Architecture, Component, field_declarations
from rankfall.nets.dropout import Dropout, no_dropout
from rankfall.nets.earlier import Earlier, OfPass, asks
from rankfall.nets.masks._mask import Mask
from rankfall.nets.masks.none import none as no_mask
from rankfall.nets.norms.none import none as no_norm
from rankfall.nets.positions._base import Position
from rankfall.nets.primitives import Initial, Sizes
from rankfall.streams import stream


@dataclass(frozen=True)
class Shape:
    """The properties of a task that a network is built for."""

    inputs: str  # "tokens" | "vectors"
    targets: str  # "classes" | "values"
    length: int  # in training; the network runs at any length that its position admits
    size_in: int
    size_out: int


class Network(nn.Module):
    blocks: Any  # a ModuleList, whose elements the type checker would take for anything
    sentinels: Any
    position: Any

    def __init__(
        self,
        embedding: nn.Module,
        sentinels: nn.Module | None,
        position: nn.Module,
        norm_in: Callable[[Tensor], Tensor],
        blocks: nn.ModuleList,
        norm_out: Callable[[Tensor], Tensor],
        head: nn.Module,
        init: Callable[..., Any],
    ) -> None:
        """Blocks may have a wider state: `widen` makes it of vectors, `narrow` vectors of it."""
        super().__init__()
        self.embedding, self.sentinels, self.position = embedding, sentinels, position
        self.norm_in, self.blocks, self.norm_out, self.head = norm_in, blocks, norm_out, head
        self.init = init
        self.is_wide = len(blocks) > 0 and hasattr(blocks[0], "widen")
        self.remembers = any(
            asks(part)
            for block in blocks
            for part in (block, *(getattr(block, name, None) for name in ("attention", "residual", "mlp_residual")))
        )

    def lift(self, inputs: Tensor, drop: Dropout = no_dropout) -> Tensor:
        """Inputs (K, B, T) or (K, B, T, C) to vectors (K, B, T', D), T' with sentinels: what enters the first block."""
        return drop(self.place(self.embedding(inputs)), "embedding")

    def place(self, x: Tensor) -> Tensor:
        """What `lift` does to vectors of the embedding (K, B, T, D): sentinels, position, norm."""
        if self.sentinels is not None:
            x = self.sentinels.add(x)
        x = self.norm_in(self.position.embed(x))
        return self.blocks[0].widen(x) if self.is_wide else x

    def maps(self) -> list[Callable[..., Tensor]]:
        """The layers as maps of states and dropout. Where they read what earlier ones made, these are of one pass: each is called once, in
        their order."""
        if not self.remembers:
            return list(self.blocks)
        earlier: Earlier = {}
        return [OfPass(block, earlier) for block in self.blocks]

    def layers(self, x: Tensor, drop: Dropout = no_dropout) -> Iterator[Tensor]:
        """The states (K, B, T', D) at layers 0 .. L, from vectors; nothing is kept but what autograd needs."""
        yield x
        for layer in self.maps():
            x = layer(x, drop)
            yield x

    def run(self, x: Tensor, drop: Dropout = no_dropout) -> Tensor:
        """The last state (K, B, T', D), from vectors."""
        for state in self.layers(x, drop):
            x = state
        return x

    def readout(self, x: Tensor) -> Tensor:
        """States (K, B, T', D) to outputs (K, B, T, C)."""
        return self.head(self.before_head(x))

    def before_head(self, x: Tensor) -> Tensor:
        """States (K, B, T', D) as the head receives them (K, B, T, D)."""
        if self.sentinels is not None:
            x = self.sentinels.strip(x)
        return self.norm_out(self.narrow(x))

    def narrow(self, x: Tensor) -> Tensor:
        """The last state as vectors (..., D)."""
        return self.blocks[0].narrow(x) if self.is_wide else x

    def forward(self, inputs: Tensor, drop: Dropout = no_dropout) -> Tensor:
        return self.head(self.features(inputs, drop))

    def features(self, inputs: Tensor, drop: Dropout = no_dropout) -> Tensor:
        """The input of the head (K, B, T, D): for the answers of a few tokens the head can be applied to these alone."""
        return self.before_head(drop(self.run(self.lift(inputs, drop), drop), "head"))

    def states(self, inputs: Tensor) -> list[Tensor]:
        """The states (K, B, T', D) at layers 0 .. L, without dropout."""
        return list(self.layers(self.lift(inputs)))

    def initialise(self, seeds: list[int]) -> None:
        """Each member draws each parameter from its own random stream, named after the parameter, so order and other members do not
        matter.
        """
        for name, value in self.named_parameters():
            start: Initial = value.initial  # type: ignore[attr-defined]
            if start.kind == "constant":
                value.data.fill_(start.constant)
                continue
            for member, seed in enumerate(seeds):
                rng = stream(seed, "init", name)
                shape = tuple(value.shape[1:])
                if start.deviation is None:
                    drawn = self.init(rng, start.role, start.kind, shape, start.fan_in)
                else:
                    drawn = rng.normal(0.0, start.deviation, shape)
                value.data[member] = torch.from_numpy(drawn).to(value.dtype)


def make(kind: str, component: Component | None, sizes: Sizes) -> Any:
    """A class or a maker of modules gets the sizes; a plain function only has its options bound. None for a component that is not used."""
    if component is None:
        return None
    found = components.load(kind, component.name)
    if isclass(found) or field_declarations(Architecture)[kind]["sized"]:
        return found(sizes, **component.options)
    return partial(found, **component.options)


def by_layer(kind: str, component: Component | None, sizes: Sizes) -> list[Any]:
    """What each layer is given: one for all of them, or, if it says `shared = False`, one of its own."""
    first = make(kind, component, replace(sizes, layer=1))
    if is_shared(first):
        return [make(kind, component, sizes)] * sizes.depth
    return [first, *(make(kind, component, replace(sizes, layer=layer)) for layer in range(2, sizes.depth + 1))]


def bind_named(function: Callable[..., Any], **offered: Any) -> Callable[..., Any]:
    """A function, or a class, with those of the arguments bound that it names among its parameters."""
    inner = function.func if isinstance(function, partial) else function
    asked = signature(inner).parameters
    return partial(function, **{name: value for name, value in offered.items() if name in asked})


def residual_of(component: Component, sizes: Sizes) -> Callable[[Tensor, Tensor], Tensor]:
    """Of one sublayer: a module of its own, or a function of the state, the branch, and what it asks for of depth and layer."""
    made: Callable[..., Any] = make("residual", component, sizes)
    return made if isinstance(made, nn.Module) else bind_named(made, depth=sizes.depth, layer=sizes.layer)


def is_shared(made: Any) -> bool:
    return bool(getattr(made, "shared", True))


def build(architecture: Architecture, shape: Shape, members: int, dtype: torch.dtype = torch.float32) -> Network:
    """The network of an architecture, in which the plan has left nothing open, for a task: K members, not yet initialised."""
    a = architecture
    heads = a.heads or 1
    head_width = a.head_width or a.width // heads
    sizes = Sizes(
        members=members,
        length=shape.length + sentinel_count(a.sentinels.name),
        depth=a.depth,
        width=a.width,
        heads=heads,
        head_width=head_width,
        mlp_width=a.mlp_width or 4 * a.width,
        size_in=shape.size_in,
        size_out=shape.size_out,
    )
    mixer = components.load("attention", a.attention.name)
    # Position and normaliser are made for the heads that the attention has.
    shaped = mixer.sized(sizes, **a.attention.options) if hasattr(mixer, "sized") else sizes
    positions = by_layer("position", a.position, shaped)
    mask = Mask(make("mask", a.mask, sizes) if a.mask else no_mask)
    normalisers = by_layer("normaliser", a.normaliser, shaped)
    block = components.load("block", a.block.name)
    blocks = nn.ModuleList()
    for index in range(a.depth):
        own = replace(sizes, layer=index + 1)
        mlp = make("mlp", a.mlp, own)
        residual = residual_of(a.residual, own)
        blocks.append(
            bind_named(block, sizes=own, new_norm=partial(make, "norm", a.norm, own))(
                attention=mixer(
                    own, positions[index], normalisers[index], mask, f"blocks.{index}", **a.attention.options
                ),
                mlp=mlp,
                residual=residual,
                mlp_residual=residual if mlp is None else residual_of(a.mlp_residual or a.residual, own),
                norm1=make("norm", a.norm, own),
                norm2=make("norm", a.norm, own) if mlp is not None else None,
                placement=a.norm_placement,
                site=f"blocks.{index}",
                **a.block.options,
            )
        )
    # A post-norm network normalises what enters its first block; a pre-norm one what leaves its last.
    network = Network(
        embedding=make("embedding", a.embedding, sizes),
        sentinels=make("sentinels", a.sentinels, sizes),
        position=positions[0] if is_shared(positions[0]) else Position(),
        norm_in=make("norm", a.norm, sizes) if a.norm_placement == "post" else no_norm,
        blocks=blocks,
        norm_out=make("norm", a.norm, sizes) if a.norm_placement == "pre" else no_norm,
        head=make("head", a.head, sizes),
        init=bind_named(make("init", a.init, sizes), depth=a.depth),
    )
    return network.to(dtype).requires_grad_(True).eval()


def sentinel_count(name: str) -> int:
    """How many tokens the sentinels add: each such component declares its COUNT."""
    found = components.describe("sentinels", name)
    return found.facts["COUNT"] if found else 0
