"""Models larger than memory: a layer's weights are fetched when it is called and dropped when the next layer is called.

The model is built without storage. A unit is a layer (an element of a ModuleList) or any other module with direct
weights. Hooks fill it before it runs. Pretrained weights come from safetensors, tensor by tensor. Initial weights are
drawn by the library's rule for each module, from a stream named by the seed and the module, so every fetch gives the
same numbers. (They differ from the numbers of a whole model that is filled at once.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from rankfall.errors import RankfallError
from rankfall.models.stored import StoredWeights
from rankfall.random_streams import words

Fill = Callable[[str, nn.Module], None]  # gives storage and values to all weights of a unit


class Streamer:
    """Hooks on a model without storage. At most one layer and the small modules in use are in memory at any time."""

    def __init__(self, model: nn.Module, fill: Fill) -> None:
        self.model, self._fill = model, fill
        self.dtype = torch.float32
        self._resident: str | None = None
        self._units = dict(units(model))
        self._empty = {name: _without_storage(module, name in self._units) for name, module in model.named_modules()}
        for name, module in model.named_modules():
            if name in self._units:
                module.register_forward_pre_hook(self._enter_layer(name), prepend=True)
            elif self._empty[name] and not any(name.startswith(f"{unit}.") for unit in self._units):
                module.register_forward_pre_hook(self._enter_single(name), prepend=True)
                module.register_forward_hook(self._leave_single(name), always_call=True)

    def switch(self, dtype: torch.dtype) -> None:
        """Change the dtype from the next fetch on."""
        if self._resident is not None:
            self._drop(self._resident)
        self._resident, self.dtype = None, dtype

    def _enter_layer(self, name: str) -> Callable[..., None]:
        """Return a hook that fetches a layer in place of the resident layer."""

        def enter(module: nn.Module, inputs: Any) -> None:
            if self._resident == name:
                return
            if self._resident is not None:
                self._drop(self._resident)
            self._fetch(name, module)
            self._resident = name

        return enter

    def _enter_single(self, name: str) -> Callable[..., None]:
        return lambda module, inputs: self._fetch(name, module)

    def _leave_single(self, name: str) -> Callable[..., None]:
        return lambda module, inputs, output: self._drop(name)

    def _fetch(self, name: str, module: nn.Module) -> None:
        # hidden from modes that record or edit the pass
        with torch.no_grad(), torch._C.DisableTorchFunction():  # type: ignore[attr-defined]
            self._fill(name, module)
            if self.dtype != torch.float32:
                inside = module.modules() if name in self._units else iter([module])
                for part in inside:
                    _convert(part, self.dtype)

    def _drop(self, name: str) -> None:
        for module, slot, empty in self._empty[name]:
            slot_of(module, slot)[slot[1]] = empty


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


Slot = tuple[str, str]  # "_parameters" or "_buffers", and the name of the tensor


def slot_of(module: nn.Module, slot: Slot) -> dict[str, Any]:
    """Return the dict of a module that holds a slot."""
    holder: dict[str, Any] = getattr(module, slot[0])
    return holder


def slots(module: nn.Module) -> Iterator[tuple[Slot, Tensor]]:
    """Yield the parameters and buffers of a module itself, without its children."""
    for kind in ("_parameters", "_buffers"):
        for name, value in getattr(module, kind).items():
            if value is not None:
                yield (kind, name), value


def _without_storage(module: nn.Module, recursive: bool) -> list[tuple[nn.Module, Slot, Any]]:
    """Return the tensors of a module, or of all modules inside it, before they have storage."""
    parts = module.modules() if recursive else iter([module])
    return [(part, slot, value) for part in parts for slot, value in slots(part)]


def _convert(module: nn.Module, dtype: torch.dtype) -> None:
    for slot, value in list(slots(module)):
        if value.is_floating_point() and value.dtype != dtype:
            put_value(module, slot, value.to(dtype))


def _allocate(module: nn.Module) -> None:
    """Allocate storage full of NaN (integers: the lowest value), so that unfilled weights are noticed."""
    for slot, value in list(slots(module)):
        put_value(module, slot, torch.full(value.shape, _lowest(value), dtype=value.dtype, device="cpu"))


def _check_filled(name: str, module: nn.Module) -> None:
    for slot, value in slots(module):
        hollow = value.isnan().any() if value.is_floating_point() else (value == _lowest(value)).any()
        if value.dtype != torch.bool and value.numel() and bool(hollow):
            raise RankfallError(f"cannot stream this model: nothing gives a value to {name}.{slot[1]}")


def _lowest(value: Tensor) -> float:
    if value.is_floating_point():
        return float("nan")
    return 0 if value.dtype == torch.bool else torch.iinfo(value.dtype).min


def put_value(module: nn.Module, slot: Slot, value: Tensor) -> None:
    slot_of(module, slot)[slot[1]] = nn.Parameter(value, requires_grad=False) if slot[0] == "_parameters" else value


class TiedWeights:
    """Weights that several modules share, by the name in each. The first name determines the draw."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.modules = dict(model.named_modules())
        names: dict[int, list[str]] = {}
        for full, module in model.named_modules():
            for slot, value in slots(module):
                if slot[0] == "_parameters":
                    names.setdefault(id(value), []).append(f"{full}.{slot[1]}".lstrip("."))
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
            before = [(slot, value) for slot, value in slots(module)]
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
                for slot, old in before:
                    slot_of(module, slot)[slot[1]] = old
        raise RankfallError(f"cannot stream this model: nothing gives a value to {' or '.join(group)}")


def draw_weights(model: nn.Module, seed: int) -> Fill:
    """Return a function that fills a unit by the library's rule, children before parents (some parents scale their children's draws)."""
    shared = TiedWeights(model)

    def fill(name: str, unit: nn.Module) -> None:
        is_unit = name in dict(units(model))
        inside = list(unit.named_modules(prefix=name))[::-1] if is_unit else [(name, unit)]
        for _, module in inside:
            _allocate(module)
        for full, module in inside:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(words(seed, "model", "init", full)[0] >> 1)
                model._init_weights(module)  # type: ignore[operator]
        for full, module in inside:
            for slot, _ in list(slots(module)):
                if shared.others(f"{full}.{slot[1]}".lstrip(".")):
                    put_value(module, slot, shared.drawn(f"{full}.{slot[1]}".lstrip("."), seed))
            _check_filled(full, module)

    return fill


def load_weights(model: nn.Module, folder: Path) -> Fill:
    """Return a function that fills a unit from the safetensors files of a folder. Buffers that they lack follow the library's rule."""
    checkpoint = StoredWeights(model, folder)
    rule, shared = draw_weights(model, 0), TiedWeights(model)

    def fill(name: str, unit: nn.Module) -> None:
        layers = dict(units(model))
        inside = list(unit.named_modules(prefix=name)) if name in layers else [(name, unit)]
        if any(slot[0] == "_buffers" for _, module in inside for slot, _ in slots(module)):
            rule(name, unit)
        for full, module in inside:
            for slot, value in list(slots(module)):
                weight = f"{full}.{slot[1]}".lstrip(".")
                stored = next((alias for alias in (weight, *shared.others(weight)) if alias in checkpoint), None)
                if stored is None and slot[0] == "_buffers":
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
                put_value(module, slot, tensor.float() if tensor.is_floating_point() else tensor)

    return fill
