"""A network of K members: embedding, blocks and head, assembled from the components that an architecture names."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from inspect import isclass, signature
from typing import Any

import torch
from torch import Tensor, nn

from rankfall import components
from rankfall.design import Architecture, Component, field_declarations
from rankfall.nets.masks._mask import Mask
from rankfall.nets.masks.none import none as no_mask
from rankfall.nets.norms.none import none as no_norm
from rankfall.nets.positions._base import Position
from rankfall.nets.primitives import Dropout, Earlier, Initial, OfPass, Sizes, asks, no_dropout
from rankfall.random_streams import stream


@dataclass(frozen=True)
class Shape:
    """The properties of a task that determine the shape of a network."""

    inputs: str  # "tokens" | "vectors"
    targets: str  # "classes" | "values"
    length: int  # in training; the network runs at any length that its position admits
    size_in: int
    size_out: int


class Network(nn.Module):
    """K members as one module: embedding, sentinels, position, blocks and head."""

    blocks: Any  # a ModuleList, whose elements have no precise type for the type checker
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
        """Build a network of these parts. Blocks with a wider state have the methods `widen`, from vectors, and `narrow`, to vectors."""
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
        """Return the input of the first block (K, B, T', D), T' with sentinels, from inputs (K, B, T) or (K, B, T, C)."""
        return drop(self.first_state(self.embedding(inputs)), "embedding")

    def first_state(self, x: Tensor) -> Tensor:
        """Add sentinels, position and norm to vectors of the embedding (K, B, T, D), as `lift` does."""
        if self.sentinels is not None:
            x = self.sentinels.add(x)
        x = self.norm_in(self.position.embed(x))
        return self.blocks[0].widen(x) if self.is_wide else x

    def maps(self) -> list[Callable[..., Tensor]]:
        """Return the layers as functions of states and dropout.

        Layers that read tensors of earlier layers serve a single pass: call each of them once, in order.
        """
        if not self.remembers:
            return list(self.blocks)
        earlier: Earlier = {}
        return [OfPass(block, earlier) for block in self.blocks]

    def layers(self, x: Tensor, drop: Dropout = no_dropout) -> Iterator[Tensor]:
        """Yield the states (K, B, T', D) at layers 0 .. L, from vectors. No state is kept here."""
        yield x
        for layer in self.maps():
            x = layer(x, drop)
            yield x

    def run(self, x: Tensor, drop: Dropout = no_dropout) -> Tensor:
        """Return the last state (K, B, T', D), from vectors."""
        for state in self.layers(x, drop):
            x = state
        return x

    def readout(self, x: Tensor) -> Tensor:
        """Return outputs (K, B, T, C) for states (K, B, T', D)."""
        return self.head(self.before_head(x))

    def before_head(self, x: Tensor) -> Tensor:
        """Return the input of the head (K, B, T, D) for states (K, B, T', D)."""
        if self.sentinels is not None:
            x = self.sentinels.strip(x)
        return self.norm_out(self.narrow(x))

    def narrow(self, x: Tensor) -> Tensor:
        """Return the last state as vectors (..., D)."""
        return self.blocks[0].narrow(x) if self.is_wide else x

    def forward(self, inputs: Tensor, drop: Dropout = no_dropout) -> Tensor:
        return self.head(self.features(inputs, drop))

    def features(self, inputs: Tensor, drop: Dropout = no_dropout) -> Tensor:
        """Return the input of the head (K, B, T, D), to which the head can be applied token by token."""
        return self.before_head(drop(self.run(self.lift(inputs, drop), drop), "head"))

    def states(self, inputs: Tensor) -> list[Tensor]:
        """Return the states (K, B, T', D) at layers 0 .. L, without dropout."""
        return list(self.layers(self.lift(inputs)))

    def initialise(self, seeds: list[int]) -> None:
        """Initialise the parameters.

        Each member draws each parameter from a random stream of its seed and the parameter's name, whatever the other members are.
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
    """Build a component, or return None if it is not used.

    A class or a factory of modules receives the sizes. A plain function has its options bound.
    """
    if component is None:
        return None
    loaded = components.load(kind, component.name)
    if isclass(loaded) or field_declarations(Architecture)[kind]["sized"]:
        return loaded(sizes, **component.options)
    return partial(loaded, **component.options)


def by_layer(kind: str, component: Component | None, sizes: Sizes) -> list[Any]:
    """Return a component for each layer: one for all layers, or separate ones if it sets `shared = False`."""
    first = make(kind, component, replace(sizes, layer=1))
    if is_shared(first):
        return [make(kind, component, sizes)] * sizes.depth
    return [first, *(make(kind, component, replace(sizes, layer=layer)) for layer in range(2, sizes.depth + 1))]


def bind_named(function: Callable[..., Any], **offered: Any) -> Callable[..., Any]:
    """Bind the offered arguments that are parameters of a function or class."""
    inner = function.func if isinstance(function, partial) else function
    parameters = signature(inner).parameters
    return partial(function, **{name: value for name, value in offered.items() if name in parameters})


def residual_of(component: Component, sizes: Sizes) -> Callable[[Tensor, Tensor], Tensor]:
    """Return the residual of one sublayer: a module, or a function of state and branch with its depth and layer bound."""
    residual = make("residual", component, sizes)
    return residual if isinstance(residual, nn.Module) else bind_named(residual, depth=sizes.depth, layer=sizes.layer)


def is_shared(component: Any) -> bool:
    """Return whether all layers use the same component."""
    return bool(getattr(component, "shared", True))


def build(architecture: Architecture, shape: Shape, members: int, dtype: torch.dtype = torch.float32) -> Network:
    """Build the network of a fully specified architecture for a task: K members, not yet initialised."""
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
    # Position and normaliser are built for the attention's heads.
    shaped = mixer.sized(sizes, **a.attention.options) if hasattr(mixer, "sized") else sizes
    positions = by_layer("position", a.position, shaped)
    mask = Mask(make("mask", a.mask, sizes) if a.mask else no_mask)
    normalisers = by_layer("normaliser", a.normaliser, shaped)
    block = components.load("block", a.block.name)
    blocks = nn.ModuleList()
    for index in range(a.depth):
        layer_sizes = replace(sizes, layer=index + 1)
        mlp = make("mlp", a.mlp, layer_sizes)
        residual = residual_of(a.residual, layer_sizes)
        blocks.append(
            bind_named(block, sizes=layer_sizes, new_norm=partial(make, "norm", a.norm, layer_sizes))(
                attention=mixer(
                    layer_sizes, positions[index], normalisers[index], mask, f"blocks.{index}", **a.attention.options
                ),
                mlp=mlp,
                residual=residual,
                mlp_residual=residual if mlp is None else residual_of(a.mlp_residual or a.residual, layer_sizes),
                norm1=make("norm", a.norm, layer_sizes),
                norm2=make("norm", a.norm, layer_sizes) if mlp is not None else None,
                placement=a.norm_placement,
                site=f"blocks.{index}",
                **a.block.options,
            )
        )
    # A post-norm network normalises the input of its first block, a pre-norm network the output of its last.
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
    """Return the number of tokens that the sentinels add, which their component declares as COUNT."""
    description = components.describe("sentinels", name)
    return description.facts["COUNT"] if description else 0


@torch.no_grad()
def attention_inputs(network: Network, inputs: Tensor) -> list[Tensor]:
    """Return the input of each layer's attention (K, B, T', D), for inputs (K, B, T) or (K, B, T, C). T' counts sentinels.

    It lies behind whatever the block puts before its attention: a norm, a read of several streams, or nothing.
    """
    layer_inputs: list[Tensor] = []
    hooks = [
        block.attention.register_forward_pre_hook(lambda _, args: layer_inputs.append(args[0]))
        for block in network.blocks
    ]
    try:
        network.run(network.lift(inputs))
    finally:
        for hook in hooks:
            hook.remove()
    return layer_inputs
