"""Models larger than memory: a layer's weights are fetched when it is called and dropped when the next layer is called.

The model is built without storage. A unit is a layer (an element of a ModuleList) or any other module with direct
weights. Hooks fill it before it runs. Pretrained weights come from safetensors, tensor by tensor. Initial weights are
drawn by the library's rule for each module, from a stream named by the seed and the module, so every fetch gives the
same numbers. (They differ from the numbers of a whole model that is filled at once.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from rankfall.errors import RankfallError
from rankfall.models.stored import StoredWeights
from rankfall.random_streams import words

Parts = list[tuple[str, nn.Module]]  # modules whose weights are fetched together, by name
Fill = Callable[[Parts], None]  # gives storage and values to their weights
Slot = tuple[dict[str, Any], str, Tensor]  # the parameters or the buffers of a module, the name of one, and its value


class Streamer:
    """Hooks on a model without storage. At most one layer and the small modules in use are in memory at any time."""

    def __init__(self, model: nn.Module, fill: Fill) -> None:
        self._fill = fill
        self.dtype = torch.float32
        self._resident: str | None = None
        layers = dict(units(model))
        self._parts: dict[str, Parts] = {
            name: list(module.named_modules(prefix=name)) if name in layers else [(name, module)]
            for name, module in model.named_modules()
        }
        # the tensors before they have storage
        self._empty = {name: [s for _, part in parts for s in slots(part)] for name, parts in self._parts.items()}
        for name, module in model.named_modules():
            if name in layers:
                module.register_forward_pre_hook(partial(self._enter_layer, name), prepend=True)
            elif self._empty[name] and not any(name.startswith(f"{unit}.") for unit in layers):
                module.register_forward_pre_hook(partial(self._fetch, name), prepend=True)
                module.register_forward_hook(partial(self._drop, name), always_call=True)

    def switch(self, dtype: torch.dtype) -> None:
        """Change the dtype from the next fetch on."""
        if self._resident is not None:
            self._drop(self._resident)
        self._resident, self.dtype = None, dtype

    def _enter_layer(self, name: str, *call: Any) -> None:
        """Fetch a layer in place of the resident layer."""
        if self._resident == name:
            return
        if self._resident is not None:
            self._drop(self._resident)
        self._fetch(name)
        self._resident = name

    def _fetch(self, name: str, *call: Any) -> None:
        # hidden from modes that record or edit the pass
        with torch.no_grad(), torch._C.DisableTorchFunction():  # type: ignore[attr-defined]
            self._fill(self._parts[name])
            for _, part in self._parts[name] if self.dtype != torch.float32 else ():
                for holder, key, value in slots(part):
                    if value.is_floating_point() and value.dtype != self.dtype:
                        put_value(holder, key, value.to(self.dtype))

    def _drop(self, name: str, *call: Any) -> None:
        for holder, key, empty in self._empty[name]:
            holder[key] = empty


def units(model: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Yield the units: the outermost elements of ModuleLists that have weights, which are the layers, and parents of PyTorch's attention.

    PyTorch's attention computes with the weights of a child that is never called, so its weights are fetched together.
    """
    names: list[str] = []
    for name, module in model.named_modules():
        if isinstance(module, nn.MultiheadAttention) and not any(name.startswith(f"{unit}.") for unit in names):
            around = name.rpartition(".")[0] or name
            names.append(around)
            yield around, model.get_submodule(around)
        if isinstance(module, nn.ModuleList) and not any(name.startswith(f"{unit}.") for unit in names):
            for child, element in module.named_children():
                if next(element.parameters(), None) is not None:
                    names.append(f"{name}.{child}")
                    yield f"{name}.{child}", element


def slots(module: nn.Module) -> list[Slot]:
    """Return the parameters and buffers of a module itself, without its children."""
    holders: tuple[dict[str, Any], ...] = (module._parameters, module._buffers)
    return [(holder, name, value) for holder in holders for name, value in holder.items() if value is not None]


def _allocate(module: nn.Module) -> None:
    """Allocate storage full of NaN (integers: the lowest value), so that unfilled weights are noticed."""
    for holder, key, value in slots(module):
        put_value(holder, key, torch.full(value.shape, _lowest(value), dtype=value.dtype, device="cpu"))


def _check_filled(name: str, module: nn.Module) -> None:
    for _, key, value in slots(module):
        hollow = value.isnan().any() if value.is_floating_point() else (value == _lowest(value)).any()
        if value.dtype != torch.bool and value.numel() and bool(hollow):
            raise RankfallError(f"cannot stream this model: nothing gives a value to {name}.{key}")


def _lowest(value: Tensor) -> float:
    if value.is_floating_point():
        return float("nan")
    return 0 if value.dtype == torch.bool else torch.iinfo(value.dtype).min


def put_value(holder: dict[str, Any], key: str, value: Tensor) -> None:
    holder[key] = nn.Parameter(value, requires_grad=False) if isinstance(holder[key], nn.Parameter) else value


class TiedWeights:
    """Weights that several modules share, by the name in each. The first name determines the draw."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.modules = dict(model.named_modules())
        names: dict[int, list[str]] = {}
        for full, module in model.named_modules():
            for key, value in module.named_parameters(recurse=False):
                names.setdefault(id(value), []).append(f"{full}.{key}".lstrip("."))
        self.groups = {name: group for group in names.values() if len(group) > 1 for name in group}

    def others(self, name: str) -> list[str]:
        """Return the other names of a shared weight."""
        return [other for other in self.groups.get(name, ()) if other != name]

    def drawn(self, name: str, seed: int) -> Tensor:
        """Draw a shared weight by the library's rule for a module that has it, or for one around it: an encoder draws its embedding."""
        group = self.groups[name]
        for owner in group:
            full, _, weight = owner.rpartition(".")
            module = self.modules[full]
            before = slots(module)
            _allocate(module)
            parts = full.split(".")
            around = [".".join(parts[:count]) for count in range(len(parts), -1, -1)]
            try:
                for ancestor in around:
                    with torch.random.fork_rng(devices=[]):
                        torch.manual_seed(words(seed, "model", "init", group[0])[0] >> 1)
                        self.model._init_weights(self.modules[ancestor])  # type: ignore[operator]
                    value = module._parameters[weight]
                    assert value is not None
                    if not bool(value.isnan().any()):
                        return value.detach()
            finally:
                for holder, key, old in before:
                    holder[key] = old
        raise RankfallError(f"cannot stream this model: nothing gives a value to {' or '.join(group)}")


def draw_weights(model: nn.Module, seed: int) -> Fill:
    """Return a function that fills a unit by the library's rule, children before parents (some parents scale their children's draws)."""
    shared = TiedWeights(model)

    def fill(parts: Parts) -> None:
        for _, module in parts:
            _allocate(module)
        for full, module in parts[::-1]:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(words(seed, "model", "init", full)[0] >> 1)
                model._init_weights(module)  # type: ignore[operator]
        for full, module in parts:
            for holder, key, _ in slots(module):
                if shared.others(f"{full}.{key}".lstrip(".")):
                    put_value(holder, key, shared.drawn(f"{full}.{key}".lstrip("."), seed))
            _check_filled(full, module)

    return fill


def load_weights(model: nn.Module, folder: Path) -> Fill:
    """Return a function that fills a unit from the safetensors files of a folder. Buffers that they lack follow the library's rule."""
    checkpoint = StoredWeights(model, folder)
    rule, shared = draw_weights(model, 0), TiedWeights(model)

    def fill(parts: Parts) -> None:
        if any(True for _, module in parts for _ in module.named_buffers(recurse=False)):
            rule(parts)
        for full, module in parts:
            for holder, key, value in slots(module):
                weight = f"{full}.{key}".lstrip(".")
                stored = next((alias for alias in (weight, *shared.others(weight)) if alias in checkpoint), None)
                if stored is None and holder is module._buffers:
                    continue
                if stored is None and "pooler" in full:
                    _allocate(module)  # not on the stream, and often not in a checkpoint
                    continue
                if stored is None:
                    raise RankfallError(f"cannot stream {folder}: {weight} is not in its safetensors files")
                tensor = checkpoint.tensor(stored)
                if tensor.shape != value.shape:
                    raise RankfallError(
                        f"{folder}: {checkpoint.key_of(stored)} has shape {tuple(tensor.shape)}, the config says {tuple(value.shape)}"
                    )
                put_value(holder, key, tensor.float() if tensor.is_floating_point() else tensor)

    return fill
