"""The knife: a forward pass of an untouched model in which some additions of the residual stream do not happen.

Where a skip is cut, the addition X + f(X) returns f(X), the very tensor, and nothing is subtracted back. Where the
MLP is removed the layer returns the state that would have entered the MLP's addition, so the MLP, its skip and a
norm that follows them are gone. Several variants may share one pass, each on its part of the batch, so that weights
that have to be fetched are fetched once.

In float64, models that ask for float32 in the middle (softmax, RMSNorm) would put a float32 floor under everything;
a request to narrow a float64 tensor to float32 is declined, and mixed einsums are promoted.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from rankfall.errors import RankfallError
from rankfall.pretrained.anatomy import ATTENTION, JOIN, MLP, Anatomy, Exit, Site, dissect
from rankfall.pretrained.frames import Call, Frames, Place
from rankfall.pretrained.record import ADDS, IN_PLACE, PRODUCTS, Recorder, tensors_in


@dataclass(frozen=True)
class Variant:
    """What is left of every block. `identity`: linear maps (by last part of the name) that return their input, for
    published variants.
    """

    name: str
    attention_skip: bool = True
    mlp: bool = True
    mlp_skip: bool = True
    identity: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        return self.attention_skip and self.mlp and self.mlp_skip and not self.identity


VARIANTS = {
    variant.name: variant
    for variant in (
        Variant("SAN", attention_skip=False, mlp=False),
        Variant("SAN+MLP", attention_skip=False),
        Variant("SAN+skip", mlp=False),
        Variant("transformer"),
        Variant("SAN+bare MLP", attention_skip=False, mlp_skip=False),
    )
}


def run_model(model: nn.Module, inputs: dict[str, Any]) -> Any:
    """One pass without gradients, caches or memories."""
    accepted = inspect.signature(model.forward).parameters
    off = {name: False for name in ("use_cache", "use_mems") if name in accepted}
    with torch.no_grad():
        return model(**inputs, **off)


def study(model: nn.Module, inputs: dict[str, Any], *, width: int, layers: int) -> Anatomy:
    """Find the residual additions of a model from one pass on a small batch (two samples or more)."""
    return watch(model, inputs, width=width, layers=layers)[0]


def watch(model: nn.Module, inputs: dict[str, Any], *, width: int, layers: int) -> tuple[Anatomy, Any]:
    """The same, and what the model returned: watching changes nothing."""
    batch = batch_of(inputs)
    if batch < 2:
        raise ValueError("the anatomy is read from two samples or more: one could be mistaken for a missing axis")
    holder: list[Recorder] = []
    with Frames(model, on_exit=lambda *exit_: holder[0].left(*exit_)) as frames:
        holder.append(Recorder(frames))
        with holder[0]:
            output = run_model(model, inputs)
    return dissect(holder[0].nodes, holder[0].outputs, batch=batch, width=width, layers=layers), output


def batch_of(inputs: dict[str, Any]) -> int:
    """Samples in a batch of model inputs."""
    return int(next(tensor for _, tensor in tensors_in(inputs)).shape[0])


@dataclass(eq=False)
class Knife(TorchFunctionMode):
    """Cuts while it is active. The batch is `len(variants)` equal parts, one for each variant. Collects the state
    of every layer.
    """

    anatomy: Anatomy
    variants: Sequence[Variant]
    frames: Frames
    sink: Callable[[int, int, Tensor], None] | None = None  # given (stream, layer, state) instead of keeping it
    check: bool = False  # whether what leaves a layer has to be, bit by bit, what enters the next
    states: dict[tuple[int, int], Tensor] = field(default_factory=dict)  # (stream, layer 0..L) -> the model's layout
    visited: dict[Place, tuple[int, ...]] = field(default_factory=dict)
    _before_mlp: dict[tuple[int, int], Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__()
        self._exits: dict[Call, list[Exit]] = {}
        for exit_ in self.anatomy.exits:
            self._exits.setdefault(exit_.call, []).append(exit_)
        self._no_mlp = all(not variant.mlp for variant in self.variants)
        self._identity = self.variants[0].identity
        if any(variant.identity != self._identity for variant in self.variants):
            raise ValueError("variants that replace modules by the identity cannot share a pass with others")

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in ADDS:
            place = self.frames.place("add")
            site = self.anatomy.sites.get(place) if place is not None else None
            if site is not None:
                return self._addition(site, func, args, kwargs)
        elif func in PRODUCTS:
            place = self.frames.place("product")
            if place is not None and place.call.module.rpartition(".")[2] in self._identity:
                return args[0]
            if self._no_mlp and place in self.anatomy.removable:
                return _nothing(func, args, kwargs)
        return _wide(func, args, kwargs)

    def _addition(self, site: Site, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        left, right = args[0] if args else kwargs["input"], args[1] if len(args) > 1 else kwargs["other"]
        state, branch = (left, right) if site.skip == 0 else (right, left)
        in_place = func.__name__ in IN_PLACE
        self.visited[site.place] = tuple(left.shape)
        if site.kind == ATTENTION:
            before = self.states.get((site.stream, site.layer - 1))
            if self.check and before is not None and not torch.equal(before.reshape(state.shape), state):
                raise RankfallError(f"the state is changed between layers {site.layer - 1} and {site.layer}")
            self._keep(site.stream, site.layer - 1, state.clone() if in_place else state)
            keep = [variant.attention_skip for variant in self.variants]
            dropped = branch
        elif site.kind == MLP:
            keep = [variant.mlp_skip or not variant.mlp for variant in self.variants]
            dropped = branch
            self._before_mlp[site.stream, site.layer] = state.clone() if in_place else state
        else:
            assert site.kind == JOIN
            keep = [variant.mlp for variant in self.variants]
            dropped = state  # the operand that is not the MLP
        if all(keep):
            return func(*args, **kwargs)
        if not any(keep):
            return left.copy_(dropped) if in_place and left is not dropped else dropped
        dropped = dropped.clone() if in_place else dropped
        total = func(*args, **kwargs)
        return self._mix(total if in_place else total.clone(), dropped, keep)

    def _mix(self, total: Tensor, dropped: Tensor, keep: list[bool]) -> Tensor:
        """In the parts of the batch whose variant does not keep the addition, put what is there without it."""
        axis = self.anatomy.batch_axis if total.dim() == 3 else 0
        part = total.shape[axis] // len(keep)
        for number, kept in enumerate(keep):
            if not kept:
                total.narrow(axis, number * part, part).copy_(dropped.narrow(axis, number * part, part))
        return total

    def leave(self, call: Call, inputs: Any, output: Any) -> Any:
        """For Frames: removal of the MLP, and the state after each layer. Sees nothing of its own arithmetic."""
        with torch._C.DisableTorchFunction():  # type: ignore[attr-defined]
            return self._leave(call, output)

    def _leave(self, call: Call, output: Any) -> Any:
        for exit_ in self._exits.get(call, ()):
            value = _at(output, exit_.path)
            before = self._before_mlp.pop((exit_.stream, exit_.layer), None)
            gone = [not variant.mlp for variant in self.variants]
            if before is not None and any(gone):
                before = before.reshape(value.shape)
                value = before if all(gone) else self._mix(value.clone(), before, [not g for g in gone])
                output = _put(output, exit_.path, value)
            if self.check or exit_.layer == self.anatomy.layers:  # otherwise the next layer's addition sees it again
                self._keep(exit_.stream, exit_.layer, value)
        return output

    def _keep(self, stream: int, layer: int, state: Tensor) -> None:
        if self.sink is None:
            self.states[stream, layer] = state
        else:
            self.sink(stream, layer, state)

    def finish(self) -> None:
        """Every planned addition has been met exactly as traced, or the numbers would be about something else."""
        missing = [site for place, site in self.anatomy.sites.items() if place not in self.visited]
        if missing:
            raise RankfallError(
                f"{len(missing)} of {len(self.anatomy.sites)} residual additions did not happen in this pass; first: "
                f"{missing[0].kind} of layer {missing[0].layer} in {missing[0].place.call}"
            )
        for place, shape in self.visited.items():
            traced = self.anatomy.sites[place].shape
            if len(shape) != len(traced) or shape[-1] != self.anatomy.width:
                raise RankfallError(f"addition in {place.call}: traced with shape {traced}, now {shape}")


def cut(
    model: nn.Module,
    anatomy: Anatomy,
    inputs: dict[str, Any],
    variants: Sequence[Variant],
    *,
    stream: int = 0,
    sink: Callable[[int, Tensor], None] | None = None,
) -> list[Tensor]:
    """States of layers 0..L, each (V, B, T, D), of all variants in one pass over the weights.

    With a `sink`, each (layer, state) is handed over as soon as it exists, and nothing is kept.
    """
    if anatomy.parallel and any(variant.mlp and not variant.mlp_skip for variant in variants):
        raise RankfallError("attention and MLP share one skip in this model: there is no MLP without its own skip")
    batch, count = batch_of(inputs), len(variants)
    repeated = _repeat(inputs, count) if count > 1 else inputs
    holder: list[Knife] = []

    def hand_over(of: int, layer: int, state: Tensor) -> None:
        if of == stream and sink is not None:
            sink(layer, _tidy(state, anatomy, count, batch))

    with Frames(model, on_exit=lambda *exit_: holder[0].leave(*exit_)) as frames:
        holder.append(Knife(anatomy, variants, frames, sink=None if sink is None else hand_over))
        with holder[0]:
            run_model(model, repeated)
    holder[0].finish()
    if sink is not None:
        return []
    return [_tidy(holder[0].states[stream, layer], anatomy, count, batch) for layer in range(anatomy.layers + 1)]


def verify(model: nn.Module, anatomy: Anatomy, inputs: dict[str, Any], plain: Any = None) -> None:
    """The whole variant under the knife gives, bit by bit, what the untouched model gives (`plain`, where it is known)."""
    plain = run_model(model, inputs) if plain is None else plain
    holder: list[Knife] = []
    with Frames(model, on_exit=lambda *exit_: holder[0].leave(*exit_)) as frames:
        holder.append(Knife(anatomy, [VARIANTS["transformer"]], frames, check=True))
        with holder[0]:
            under = run_model(model, inputs)
    holder[0].finish()
    before, after = dict(tensors_in(plain)), dict(tensors_in(under))
    wrong = [path for path in before if path not in after or not torch.equal(before[path], after[path])]
    if wrong or not before:
        raise RankfallError(f"the intercepted model is not bit-identical to the untouched one: {wrong[:1]}")


def _repeat(value: Any, count: int) -> Any:
    """Every tensor of the inputs `count` times along the batch."""
    if isinstance(value, Tensor):
        return value.repeat(count, *[1] * (value.dim() - 1))
    if isinstance(value, dict):
        return {key: _repeat(item, count) for key, item in value.items()}
    return value


def _tidy(state: Tensor, anatomy: Anatomy, count: int, batch: int) -> Tensor:
    """(V*B, T, D), (T, V*B, D) or (V*B*T, D) -> (V, B, T, D)."""
    if anatomy.batch_axis == 1:
        state = state.transpose(0, 1)
    return state.reshape(count, batch, -1, anatomy.width)


class Wide(TorchFunctionMode):
    """Keeps float64 as the knife does, and cuts nothing."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _wide(func, args, kwargs or {})


def _nothing(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """Zeros in the shape of a product whose result is not used."""
    if func is torch.addmm:
        return args[1].new_zeros(args[1].shape[0], args[2].shape[1])
    value = args[0] if args else kwargs["input"]
    weight = args[1] if len(args) > 1 else kwargs["weight"]
    return value.new_zeros(*value.shape[:-1], weight.shape[0])


def _wide(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call, but keep float64 where the model asks for float32."""
    name = getattr(func, "__name__", "")
    if name in ("softmax", "sum", "mean", "log_softmax") and kwargs.get("dtype") == torch.float32 and _double(args):
        kwargs = {**kwargs, "dtype": torch.float64}
    elif name == "float" and _double(args):
        return args[0]
    elif name == "to" and _double(args) and (torch.float32 in args[1:] or kwargs.get("dtype") == torch.float32):
        args = tuple(torch.float64 if arg is torch.float32 else arg for arg in args)
        kwargs = {**kwargs, "dtype": torch.float64} if "dtype" in kwargs else kwargs
    elif name == "einsum" and len({tensor.dtype for _, tensor in tensors_in(args)}) > 1:
        args = (args[0], *(operand.double() if isinstance(operand, Tensor) else operand for operand in args[1:]))
    return func(*args, **kwargs)


def _double(args: tuple[Any, ...]) -> bool:
    return bool(args) and isinstance(args[0], Tensor) and args[0].dtype == torch.float64


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def _put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """A copy of a nest of tuples, lists and dicts with one part replaced."""
    if not path:
        return new
    inner = _put(value[path[0]], path[1:], new)
    if isinstance(value, dict):
        copy = type(value)(**value)
        copy[path[0]] = inner
        return copy
    items = list(value)
    items[path[0]] = inner
    return type(value)(items)
