"""Conversion of BERT's family to Rankfall's own network: the same weights in the blocks of the studies of small networks.

This is possible if a layer is plain softmax attention and an MLP, each followed by its norm, with positions in the
embedding only. It serves measures that need more than a forward pass, above all the propagation of the differences
between tokens apart from what they share. It is also a second, independent implementation of every cut variant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

import torch
from torch import nn

from rankfall.design import Component, attention_alone
from rankfall.errors import RankfallError
from rankfall.models.subject import Subject
from rankfall.nets.network import Network, Shape, build
from rankfall.streams.cuts import Variant

PARTS = ("query", "key", "value", "output", "norm1", "inner", "outer", "norm2")  # of a layer of Rankfall's network
BERT = (  # their names in a layer of BERT
    *("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"),
    *("attention.output.LayerNorm", "intermediate.dense", "output.dense", "output.LayerNorm"),
)
ALBERT = (
    *("attention.query", "attention.key", "attention.value", "attention.dense", "attention.LayerNorm"),
    *("ffn", "ffn_output", "full_layer_layer_norm"),
)
DISTILBERT = (
    *("attention.q_lin", "attention.k_lin", "attention.v_lin", "attention.out_lin", "sa_layer_norm"),
    *("ffn.lin1", "ffn.lin2", "output_layer_norm"),
)


def _albert_layers(model: Any) -> Iterator[nn.Module]:
    """Yield the layer of every depth; the layers of a group repeat."""
    config = model.config
    for index in range(config.num_hidden_layers):
        group = model.encoder.albert_layer_groups[int(index / (config.num_hidden_layers / config.num_hidden_groups))]
        yield from group.albert_layers


FAMILIES: dict[str, tuple[Callable[[Any], Iterable[nn.Module]], tuple[str, ...]]] = {
    "bert": (lambda model: model.encoder.layer, BERT),
    "roberta": (lambda model: model.encoder.layer, BERT),
    "albert": (_albert_layers, ALBERT),
    "distilbert": (lambda model: model.transformer.layer, DISTILBERT),
}


def convertible(subject: Subject) -> bool:
    """Return whether this model can be converted to Rankfall's blocks."""
    return subject.loaded.config.model_type in FAMILIES and subject.loaded.streamer is None


def as_network(subject: Subject, variant: Variant) -> Network:
    """Return a network of one member in float64 whose blocks are this variant of the model.

    Its embedding is not the model's: start from states.
    """
    config = subject.loaded.config
    layers_of, paths = FAMILIES[config.model_type]
    layers = [dict(zip(PARTS, map(layer.get_submodule, paths))) for layer in layers_of(subject.loaded.model)]
    first = layers[0]
    architecture = attention_alone(
        "model",
        residual=Component("add" if variant.attention_skip else "none"),
        mlp=Component(_activation(config) if variant.mlp else "none"),
        mlp_residual=Component("add" if variant.mlp_skip else "none"),
        norm=Component("layer", {"eps": first["norm1"].eps}),
        init=Component("published"),
        depth=len(layers),
        heads=subject.loaded.heads,
        width=subject.loaded.width,
        mlp_width=cast("nn.Linear", first["inner"]).out_features,
    )
    network = build(architecture, Shape("vectors", "values", subject.tokens, 1, 1), 1, torch.float64)
    for block, parts in zip(network.blocks, layers, strict=True):
        for name in ("query", "key", "value", "output"):
            _linear(getattr(block.attention, name), parts[name])
        _norm(block.norm1, parts["norm1"])
        if block.mlp is not None:
            _linear(block.mlp.inner, parts["inner"])
            _linear(block.mlp.outer, parts["outer"])
            _norm(block.norm2, parts["norm2"])
    return network.requires_grad_(False)


def _activation(config: Any) -> str:
    """Return the name of the MLP with the model's activation."""
    name = getattr(config, "hidden_act", None) or getattr(config, "activation", None)
    supported = ("gelu", "relu")
    if name not in supported:
        raise RankfallError(f"activation {name!r} has no counterpart in our own MLPs ({', '.join(supported)})")
    return str(name)


def _linear(ours: Any, theirs: Any) -> None:
    ours.weight.data = theirs.weight.detach().double().T[None].contiguous()  # (1, in, out)
    ours.bias.data = theirs.bias.detach().double()[None, None]


def _norm(ours: Any, theirs: Any) -> None:
    shape = (1, 1, 1, -1)
    ours.gain.data, ours.bias.data = (value.detach().double().view(shape) for value in (theirs.weight, theirs.bias))
