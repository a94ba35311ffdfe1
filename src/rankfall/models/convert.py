"""BERT's family as a network of our own: the same weights in the blocks that the studies of small networks work on.

Possible where a layer is plain softmax attention and an MLP, each followed by its norm, with positions in the embedding
only. It serves what needs more than a forward pass, above all propagation of the differences between tokens apart from
what they share, and it is a second, independent implementation of every cut variant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from rankfall.design import Architecture, Component
from rankfall.errors import RankfallError
from rankfall.models.variants import Variant
from rankfall.nets.network import Network, Shape, build

if TYPE_CHECKING:
    from rankfall.models.subject import Subject

Parts = dict[str, nn.Module]  # query, key, value, output, norm1, inner, outer, norm2


def _bert(model: Any) -> Iterator[Parts]:
    for layer in model.encoder.layer:
        yield {
            "query": layer.attention.self.query,
            "key": layer.attention.self.key,
            "value": layer.attention.self.value,
            "output": layer.attention.output.dense,
            "norm1": layer.attention.output.LayerNorm,
            "inner": layer.intermediate.dense,
            "outer": layer.output.dense,
            "norm2": layer.output.LayerNorm,
        }


def _albert(model: Any) -> Iterator[Parts]:
    config = model.config
    for index in range(config.num_hidden_layers):
        group = model.encoder.albert_layer_groups[int(index / (config.num_hidden_layers / config.num_hidden_groups))]
        for layer in group.albert_layers:
            yield {
                "query": layer.attention.query,
                "key": layer.attention.key,
                "value": layer.attention.value,
                "output": layer.attention.dense,
                "norm1": layer.attention.LayerNorm,
                "inner": layer.ffn,
                "outer": layer.ffn_output,
                "norm2": layer.full_layer_layer_norm,
            }


def _distilbert(model: Any) -> Iterator[Parts]:
    for layer in model.transformer.layer:
        attention = layer.attention
        yield {
            "query": attention.q_lin,
            "key": attention.k_lin,
            "value": attention.v_lin,
            "output": attention.out_lin,
            "norm1": layer.sa_layer_norm,
            "inner": layer.ffn.lin1,
            "outer": layer.ffn.lin2,
            "norm2": layer.output_layer_norm,
        }


FAMILIES: dict[str, Callable[[Any], Iterator[Parts]]] = {
    "bert": _bert,
    "roberta": _bert,
    "albert": _albert,
    "distilbert": _distilbert,
}
EXACT_GELU = ("gelu",)  # other spellings are approximations that our MLP does not have


def convertible(subject: Subject) -> bool:
    """Whether this model has a form in our own blocks."""
    return subject.loaded.config.model_type in FAMILIES and subject.loaded.streamer is None


def as_network(subject: Subject, variant: Variant) -> Network:
    """One member in float64 whose blocks are this variant of the model. Its embedding is not the model's: start from states."""
    config = subject.loaded.config
    if not convertible(subject):
        raise RankfallError(
            f"model type {config.model_type!r} has no form in our own blocks; {', '.join(FAMILIES)} have"
        )
    layers = list(FAMILIES[config.model_type](subject.loaded.model))
    first = layers[0]
    architecture = Architecture(
        name="model",
        block=Component("attention"),
        attention=Component("multihead"),
        normaliser=Component("softmax"),
        position=Component("none"),
        mask=Component("none"),
        residual=Component("add" if variant.attention_skip else "none"),
        mlp=Component(_activation(config) if variant.mlp else "none"),
        mlp_residual=Component("add" if variant.mlp_skip else "none"),
        norm=Component("layer", {"eps": first["norm1"].eps}),
        norm_placement="post",
        embedding=Component("linear"),
        head=Component("regression"),
        sentinels=Component("none"),
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
    name = getattr(config, "hidden_act", None) or getattr(config, "activation", None)
    known = {"gelu": "gelu", "relu": "relu"}
    if name not in known:
        raise RankfallError(f"activation {name!r} has no counterpart in our own MLPs ({', '.join(known)})")
    return known[name]


def _linear(ours: Any, theirs: Any) -> None:
    ours.weight.data = theirs.weight.detach().double().T[None].contiguous()  # (1, in, out)
    ours.bias.data = theirs.bias.detach().double()[None, None]


def _norm(ours: Any, theirs: Any) -> None:
    shape = (1, 1, 1, -1)
    ours.gain.data, ours.bias.data = (value.detach().double().view(shape) for value in (theirs.weight, theirs.bias))


def first_states(subject: Subject, start: int, stop: int) -> Tensor:
    """What enters the first layer, (1, B, T, D) in float64."""
    found: dict[int, Tensor] = {}
    subject.run([subject.variants[0]], start, stop, found.__setitem__)
    return found[0].double()
