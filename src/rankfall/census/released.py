"""A model type at the sizes of its default configuration: whole if it fits into memory, else streamed layer by layer.

A streamed model gives states only, and no measure of its branches. Layers and vocabulary may be cut.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import Tensor, nn

from rankfall.check.layer import LayerReport, fill_state_columns
from rankfall.check.library import build_model
from rankfall.errors import RankfallError
from rankfall.models.families.classes import maker
from rankfall.models.families.drawn import drawn_tokens
from rankfall.models.families.example import example_inputs
from rankfall.models.families.small import configure, cut, small_values
from rankfall.models.source import quiet
from rankfall.models.streaming import Streamer, draw_weights
from rankfall.models.weights import prepare_config
from rankfall.rank.residual import floor_of
from rankfall.streams.cuts import states_of
from rankfall.streams.examine import Examined
from rankfall.streams.flow import Flow

# in a whole measurement: the model in float32, a copy in float64, and the tensors that a pass with gradients keeps
BYTES_OF_A_WEIGHT = 24
FLOOR = 1e-6  # a smaller residual in float32 is rounding
STATES = "at released widths only states are measured"
UNKNOWN = "streamed, its weights being too many to be in memory at once: only what states tell"


class Streamed(Exception):
    """The signal that a model is too large to be measured whole."""

    def __init__(self, config: Any, weights: int) -> None:
        super().__init__(f"{weights} weights")
        self.config, self.weights = config, weights


def released_example(
    kind: str, seed: int, tokens: int, gigabytes: float, depth: int | None = None
) -> tuple[nn.Module, Any, dict[str, torch.Tensor]]:
    """Return the model, its configuration and inputs on which it runs, or raise `Streamed` if it does not fit.

    `depth`: the most layers, with a small vocabulary; widths stay the same.
    """
    from transformers import CONFIG_MAPPING

    cls = CONFIG_MAPPING[kind]
    config = cls() if depth is None else configure(kind, small_values(cls, depth, cut))
    prepare_config(config)
    count = sum(weight.numel() for weight in hollow(config).parameters())
    if count * BYTES_OF_A_WEIGHT > gigabytes * 2**30:
        raise Streamed(config, count)
    model = build_model(kind, config, seed, count + 1)
    return model, config, example_inputs(model, config, tokens=tokens, seed=seed)


def hollow(config: Any) -> nn.Module:
    """Return the model without storage."""
    with quiet(), torch.device("meta"):
        model: nn.Module = maker(config)(config)
    return model.float().eval()


def streamed_rows(config: Any, seed: int, tokens: int) -> list[dict[str, Any]]:
    """Return one row per layer, 0 to L, of a model that reads text: norm, residual and effective rank of its states."""
    model = hollow(config)
    accepted = inspect.signature(model.forward).parameters
    if "input_ids" not in accepted or getattr(config, "is_encoder_decoder", False):
        raise RankfallError(
            f"{type(model).__name__} is too large to be whole, and is streamed only if it reads text alone"
        )
    layers = longest_stack(model)
    Streamer(model, draw_weights(model, seed))
    states: list[Tensor] = []
    for number, (_, layer) in enumerate(layers):
        if number == 0:
            layer.register_forward_pre_hook(
                lambda module, args, named: states.append(first_state(args, named)), with_kwargs=True
            )
        layer.register_forward_hook(lambda module, args, output: states.append(first_state((output,), {})))
    ids = drawn_tokens(config, tokens, torch.Generator().manual_seed(seed))
    with torch.no_grad():
        model(input_ids=ids, **({"use_cache": False} if "use_cache" in accepted else {}))
    if len(states) != len(layers) + 1 or any(state.shape != states[0].shape for state in states):
        raise RankfallError(
            f"{type(model).__name__} does not run its {len(layers)} layers once each, one after the other"
        )
    shared = {
        "stream": "", "layers": len(layers), "width": states[0].shape[-1], "tokens": states[0].shape[1],
        "samples": len(ids), "dtype": "float32",
        "reasons": UNKNOWN, "class": type(model).__name__, "inputs": "text",
        "parameters": sum(weight.numel() for weight in model.parameters()),
    }  # fmt: skip
    names = ["", *(name for name, _ in layers)]
    return [
        shared | {"layer": number, "name": names[number] or None} | state_columns(state)
        for number, state in enumerate(states)
    ]


def longest_stack(model: nn.Module) -> list[tuple[str, nn.Module]]:
    """Return the layers: the elements of the longest `nn.ModuleList` whose members all have weights."""
    stacks = [
        [(f"{name}.{child}", part) for child, part in module.named_children()]
        for name, module in model.named_modules()
        if isinstance(module, nn.ModuleList) and all(next(part.parameters(), None) is not None for part in module)
    ]
    if not stacks:
        raise RankfallError(f"{type(model).__name__} has no list of layers to be streamed")
    return max(stacks, key=len)


def first_state(args: tuple[Any, ...], named: dict[str, Any]) -> Tensor:
    """Return the first tensor (S, T, D) among the inputs or outputs of a layer."""
    queue = [*args, *named.values()]
    while queue:
        item = queue.pop(0)
        if isinstance(item, Tensor) and item.is_floating_point() and item.dim() == 3:
            return item.detach().double()
        if isinstance(item, tuple | list):
            queue = [*item, *queue]
    raise RankfallError("a layer is given, or returns, no states")


def rows_of_states(examined: Examined, flow: Flow) -> list[dict[str, Any]]:
    """Return one row per layer, 0 to L, with the columns that need only the states."""
    states = states_of(examined, flow)
    shared = {
        "stream": flow.name, "layers": flow.depth, "width": flow.width, "tokens": states[0].shape[1], "samples": states[0].shape[0],
        "skips": flow.skips, "dtype": str(examined.dtype).removeprefix("torch."), "reasons": STATES,
    }  # fmt: skip
    names = [None, *flow.layers]
    floor = floor_of(states[0].dtype)
    return [
        shared | {"layer": number, "name": names[number]} | state_columns(state) | {"floor": floor}
        for number, state in enumerate(states)
    ]


def state_columns(state: Tensor) -> dict[str, float | None]:
    """Return the columns of the census that need only a state."""
    report = LayerReport(0)
    fill_state_columns(state, report)
    about = {"residual": report.residual, "norm_of_state": report.norm, "effective_rank": report.effective_rank}
    return about | {"floor": FLOOR}
