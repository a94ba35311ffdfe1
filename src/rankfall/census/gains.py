"""Scaling of a small model's initial weights to the size of the released model's weights.

At initialisation the width of a model affects a layer only through the sums in its maps: the output of a map is std x sqrt(fan in) as
large as its input. The library draws most maps with a fixed std of 0.02, so std x sqrt(fan in) is 0.11 at width 32 and 0.55 at width 768.
A small model represents the released one if every map has the released std x sqrt(fan in), and every table (whose rows are read one at a
time, like an embedding) the released std.

The released model is built without storage, and the library's initialisation runs on it. A sample of numbers stands for each weight, so
that a map of any size costs the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import sqrt
from statistics import median
from typing import Any, cast
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from rankfall.errors import describe_error
from rankfall.models.families.classes import maker
from rankfall.models.families.small import configure, cut, small_values
from rankfall.models.source import quiet
from rankfall.models.weights import numberless, prepare_config

SAMPLE = 16384  # numbers, which give a std to 0.6%
TABLE = re.compile(r"embed|token|position|bias|latent|queries|prompt")  # tables among weights outside PyTorch's modules
CONSTANT = re.compile(
    r"(embed|input)_scale$|^normalizer$|^mla_scale|lora_scale$"
)  # factors of a state, often sqrt(width)


@dataclass(frozen=True)
class Gain:
    """The size of a weight. `fan_in` is the count of numbers that an output sums, None for a table."""

    std: float
    fan_in: int | None

    @property
    def size(self) -> float:
        return self.std * sqrt(self.fan_in or 1)


class InitialSamples(TorchDispatchMode):
    """Mode that tracks initialisation of tensors without storage on a sample of each."""

    def __init__(self, draw_truncated: Callable[..., Tensor]) -> None:
        super().__init__()
        self._draw_truncated = draw_truncated
        self._samples: dict[Any, Tensor] = {}  # by storage

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        output = func(*args, **kwargs)
        target = args[0] if args else None
        in_place = str(func).split(".")[1].endswith("_")  # aten.normal_.default
        if in_place and isinstance(target, Tensor) and target.is_meta:
            storage = target.untyped_storage()
            # The change of a part of a tensor, such as the row of a padding token, is left out.
            if target.numel() * target.element_size() == storage.nbytes():
                sample = self._samples.pop(storage, torch.zeros(SAMPLE))
                # Values that come from another tensor are unknown.
                if not any(isinstance(x, Tensor) and (x.is_meta or x.dim()) for x in args[1:]):
                    self._samples[storage] = func(sample, *args[1:], **kwargs)
        return output

    def find(self, weight: Tensor) -> Tensor | None:
        return self._samples.get(weight.untyped_storage())

    def truncate(self, tensor: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """Draw a truncated normal distribution, which PyTorch skips for tensors without storage.

        `nn.init.trunc_normal_` leads back here while the library initialises a model, so PyTorch's own function is kept from before.
        """
        if not tensor.is_meta:
            return self._draw_truncated(tensor, *args, **kwargs)
        self._samples[tensor.untyped_storage()] = self._draw_truncated(
            torch.zeros(SAMPLE, device="cpu"), *args, **kwargs
        )
        return tensor


def fan_in(module: nn.Module, name: str, weight: Tensor) -> int | None:
    """Return how many numbers an output of a weight sums, or None for a table or a shift."""
    from transformers.pytorch_utils import Conv1D

    if weight.dim() < 2 or isinstance(module, nn.Embedding):
        return None
    if isinstance(module, Conv1D):  # (in, out)
        return weight.shape[0]
    if isinstance(module, nn.modules.conv._ConvNd):  # (out, in, kernel)
        return weight[0].numel()
    if not isinstance(module, nn.Linear | nn.MultiheadAttention) and (
        weight.shape[:-1].numel() == 1 or (TABLE.search(name) and not name.endswith("weight"))
    ):
        return None
    transposed = weight.dim() == 3 and getattr(module, "is_transposed", False)  # experts (E, in, out)
    return weight.shape[-2 if transposed else -1]


def weights_of(model: nn.Module) -> Iterator[tuple[str, nn.Module, Tensor]]:
    """Yield the name of each weight, its module and the weight. A shared weight comes once."""
    seen: set[int] = set()
    for prefix, module in model.named_modules():
        for name, weight in module.named_parameters(recurse=False):
            if id(weight) not in seen and weight.is_floating_point():
                seen.add(id(weight))
                yield f"{prefix}.{name}".lstrip("."), module, weight


def gain_of(module: nn.Module, name: str, weight: Tensor, sample: Tensor) -> Gain | None:
    """Return the gain of a weight with these numbers, or None if they are not drawn about zero."""
    if not is_drawn(sample):
        return None
    return Gain(float(sample.double().std(unbiased=False)), fan_in(module, name.rpartition(".")[2], weight))


def is_drawn(values: Tensor) -> bool:
    """Return whether numbers vary about zero."""
    wide = values.double()
    std, mean = float(wide.std(unbiased=False)), float(wide.mean())
    return std > 0 and abs(mean) < std


def is_within(name: str, layers: tuple[str, ...]) -> bool:
    """Return whether a module or a weight is in one of these modules."""
    return any(name == layer or name.startswith(f"{layer}.") for layer in layers)


def gains_of(model: nn.Module) -> dict[str, Gain]:
    """Return the gains of a model's present weights, by name."""
    gains = {name: gain_of(module, name, weight, weight.detach()) for name, module, weight in weights_of(model)}
    return {name: gain for name, gain in gains.items() if gain is not None}


def hollow_model(config: Any) -> tuple[nn.Module, InitialSamples]:
    """Return a model without storage, and samples of the library's initialisation of its weights."""
    from transformers.initialization import TORCH_INIT_FUNCTIONS

    prepare_config(config)
    samples = InitialSamples(cast("Callable[..., Tensor]", TORCH_INIT_FUNCTIONS["trunc_normal_"]))
    truncated = patch.dict(TORCH_INIT_FUNCTIONS, trunc_normal_=samples.truncate)
    with quiet(), torch.random.fork_rng(devices=[]), torch.device("meta"), samples, truncated:
        torch.manual_seed(0)
        model = maker(config)(config)
        model.initialize_weights()  # type: ignore[operator]  # skipped by the library without storage
    return model, samples


def released_model(kind: str, depth: int) -> tuple[nn.Module, InitialSamples]:
    """Return the model at the library's default sizes, cut to at most `depth` layers if its configuration allows."""
    from transformers import CONFIG_MAPPING

    cls = CONFIG_MAPPING[kind]
    try:
        return hollow_model(configure(kind, small_values(cls, depth, cut)))
    except Exception:  # whatever the library raises
        return hollow_model(cls())


def released_gains(kind: str, model: nn.Module, depth: int) -> tuple[dict[str, Gain], str]:
    """Return the released gains of a small model's weights, by their names in the small model, and the reason if there are none.

    A model that is a part of the whole has the gains of that part. A layer without a counterpart has the median of the others.
    """
    try:
        whole, samples = released_model(kind, depth)
    except Exception as error:  # whatever the library raises
        return {}, f"the released model cannot be built without storage: {describe_error(error, 120)}"
    counterpart = next((part for part in whole.modules() if type(part) is type(model)), None)
    if counterpart is None:
        return {}, f"the released model has no {type(model).__name__}"
    exact: dict[str, Gain] = {}
    alike: dict[str, list[Gain]] = {}
    for name, module, weight in weights_of(counterpart):
        sample = samples.find(weight)
        gain = None if sample is None else gain_of(module, name, weight, sample)
        if gain is not None:
            exact[name] = gain
            alike.setdefault(numberless(name), []).append(gain)
    gains = {}
    for name, _, _ in weights_of(model):
        others = alike.get(numberless(name), [])
        if name in exact:
            gains[name] = exact[name]
        elif others:
            gains[name] = Gain(median(other.std for other in others), others[0].fan_in)
    copy_constants(counterpart, samples, model)
    return gains, ""


def copy_constants(released: nn.Module, samples: InitialSamples, model: nn.Module) -> None:
    """Copy constant factors of the state, such as that of the embeddings, from the released model to a small one."""
    known = dict(released.named_modules())
    for name, module in model.named_modules():
        buffers = dict(module.named_buffers(recurse=False))
        for constant in filter(CONSTANT.search, (*vars(module), *buffers)):
            value = getattr(known.get(name), constant, None)
            if isinstance(value, float):
                setattr(module, constant, value)
            elif isinstance(value, Tensor) and value.dim() == 0 and (sample := samples.find(value)) is not None:
                buffers[constant].fill_(float(sample[0]))


def bring_to_released(model: nn.Module, gains: Mapping[str, Gain]) -> None:
    """Scale each weight of a small model to the size of the released one."""
    now = gains_of(model)
    with torch.no_grad():
        for name, _, weight in weights_of(model):
            if name in gains and name in now:
                weight.mul_(gains[name].size / now[name].size)
