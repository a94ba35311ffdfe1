"""A forward pass of an unchanged model that leaves out some additions of the residual stream.

If a skip connection is cut, the addition X + f(X) returns the tensor f(X) itself; nothing is subtracted afterwards. If the
MLP is removed, the layer returns the state that would have entered the MLP's addition, so that the MLP, its skip connection and a
norm after them are gone. Several variants may share one pass, each on its part of the batch, so that streamed weights are
fetched once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from rankfall.errors import RankfallError
from rankfall.models.anatomy import ATTENTION, JOIN, MLP, Anatomy, Exit, Site
from rankfall.streams.forward import batch_of, in_float64, run_model
from rankfall.streams.frames import Call, Frames, Operation
from rankfall.streams.record import ADDS, IN_PLACE, PRODUCTS, put, tensors_in
from rankfall.streams.repeats import once
from rankfall.streams.variants import VARIANTS, Variant


@dataclass(eq=False)
class PassEditor(TorchFunctionMode):
    """Mode that leaves out additions and collects the state of every layer. The batch has `len(variants)` equal parts, one
    for each variant.
    """

    anatomy: Anatomy
    variants: Sequence[Variant]
    frames: Frames
    sink: Callable[[int, int, Tensor], None] | None = (
        None  # receives (residual_stream, layer, state); None: keep the states
    )
    check: bool = False  # whether the state leaving a layer must equal, bit by bit, the state entering the next
    states: dict[tuple[int, int], Tensor] = field(
        default_factory=dict
    )  # (residual_stream, layer 0..L) -> the model's layout
    visited: dict[Operation, tuple[int, ...]] = field(default_factory=dict)
    _before_mlp: dict[tuple[int, int], Tensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__()
        self._exits: dict[Call, list[Exit]] = {}
        for exit_ in self.anatomy.exits:
            self._exits.setdefault(exit_.call, []).append(exit_)
        self._no_mlp = all(not variant.mlp for variant in self.variants)
        self._whole = all(variant.whole for variant in self.variants)
        self._identity = self.variants[0].identity
        if any(variant.identity != self._identity for variant in self.variants):
            raise ValueError("variants that replace modules by the identity cannot share a pass with others")

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in ADDS:
            operation = self.frames.operation("add")
            site = self.anatomy.sites.get(operation) if operation is not None else None
            if site is not None:
                return self._addition(site, func, args, kwargs)
        elif func in PRODUCTS:
            operation = self.frames.operation("product")
            if operation is not None and operation.call.module.rpartition(".")[2] in self._identity:
                return args[0]
            if self._no_mlp and operation in self.anatomy.removable:
                return _nothing(func, args, kwargs)
        # A pass without cuts must equal the untouched model bit by bit, so it computes the same products.
        return in_float64(func, args, kwargs) if self._whole else once(func, args, kwargs)

    def _addition(self, site: Site, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        left, right = args[0] if args else kwargs["input"], args[1] if len(args) > 1 else kwargs["other"]
        state, branch = (left, right) if site.skip == 0 else (right, left)
        in_place = func.__name__ in IN_PLACE
        self.visited[site.operation] = tuple(left.shape)
        if site.kind == ATTENTION:
            before = self.states.get((site.residual_stream, site.layer - 1))
            if self.check and before is not None and not torch.equal(before.reshape(state.shape), state):
                raise RankfallError(f"the state is changed between layers {site.layer - 1} and {site.layer}")
            self._keep(site.residual_stream, site.layer - 1, state.clone() if in_place else state)
            keep = [variant.attention_skip for variant in self.variants]
            dropped = branch
        elif site.kind == MLP:
            keep = [variant.mlp_skip or not variant.mlp for variant in self.variants]
            dropped = branch
            self._before_mlp[site.residual_stream, site.layer] = state.clone() if in_place else state
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
        """Return `total`, with `dropped` in the parts of the batch whose variant leaves out the addition."""
        axis = self.anatomy.batch_axis if total.dim() == 3 else 0
        part = total.shape[axis] // len(keep)
        for number, kept in enumerate(keep):
            if not kept:
                total.narrow(axis, number * part, part).copy_(dropped.narrow(axis, number * part, part))
        return total

    def leave(self, call: Call, inputs: Any, output: Any) -> Any:
        """Remove the MLP and keep the state after each layer; `Frames` calls this. Its own arithmetic is not intercepted."""
        with torch._C.DisableTorchFunction():  # type: ignore[attr-defined]
            return self._leave(call, output)

    def _leave(self, call: Call, output: Any) -> Any:
        for exit_ in self._exits.get(call, ()):
            value = _at(output, exit_.path)
            before = self._before_mlp.pop((exit_.residual_stream, exit_.layer), None)
            gone = [not variant.mlp for variant in self.variants]
            if before is not None and any(gone):
                before = before.reshape(value.shape)
                value = before if all(gone) else self._mix(value.clone(), before, [not g for g in gone])
                output = put(output, exit_.path, value)
            if self.check or exit_.layer == self.anatomy.layers:  # otherwise the next layer's addition keeps it
                self._keep(exit_.residual_stream, exit_.layer, value)
        return output

    def _keep(self, residual_stream: int, layer: int, state: Tensor) -> None:
        if self.sink is None:
            self.states[residual_stream, layer] = state
        else:
            self.sink(residual_stream, layer, state)

    def finish(self) -> None:
        """Raise an error unless every addition of the anatomy took place, with the recorded width and number of axes."""
        missing = [site for operation, site in self.anatomy.sites.items() if operation not in self.visited]
        if missing:
            raise RankfallError(
                f"{len(missing)} of {len(self.anatomy.sites)} residual additions did not happen in this pass; first: "
                f"{missing[0].kind} of layer {missing[0].layer} in {missing[0].operation.call}"
            )
        for operation, shape in self.visited.items():
            traced = self.anatomy.sites[operation].shape
            if len(shape) != len(traced) or shape[-1] != self.anatomy.width:
                raise RankfallError(f"addition in {operation.call}: traced with shape {traced}, now {shape}")


def cut(
    model: nn.Module,
    anatomy: Anatomy,
    inputs: dict[str, Any],
    variants: Sequence[Variant],
    *,
    residual_stream: int = 0,
    sink: Callable[[int, Tensor], None] | None = None,
) -> list[Tensor]:
    """Return the states of layers 0..L, each (V, B, T, D), of all variants in one pass over the weights.

    A `sink` receives each (layer, state) as soon as it exists, and nothing is kept.
    """
    if anatomy.parallel and any(variant.mlp and not variant.mlp_skip for variant in variants):
        raise RankfallError("attention and MLP share one skip in this model: there is no MLP without its own skip")
    batch, count = batch_of(inputs), len(variants)
    repeated = _repeat(inputs, count) if count > 1 else inputs
    holder: list[PassEditor] = []

    def hand_over(of: int, layer: int, state: Tensor) -> None:
        if of == residual_stream and sink is not None:
            sink(layer, _tidy(state, anatomy, count, batch))

    with Frames(model, on_exit=lambda *exit_: holder[0].leave(*exit_)) as frames:
        holder.append(PassEditor(anatomy, variants, frames, sink=None if sink is None else hand_over))
        with holder[0]:
            run_model(model, repeated)
    holder[0].finish()
    if sink is not None:
        return []
    return [
        _tidy(holder[0].states[residual_stream, layer], anatomy, count, batch) for layer in range(anatomy.layers + 1)
    ]


def verify(model: nn.Module, anatomy: Anatomy, inputs: dict[str, Any], plain: Any = None) -> None:
    """Raise an error unless the intercepted pass without cuts equals the plain pass bit by bit (`plain`, if it is known)."""
    plain = run_model(model, inputs) if plain is None else plain
    holder: list[PassEditor] = []
    with Frames(model, on_exit=lambda *exit_: holder[0].leave(*exit_)) as frames:
        holder.append(PassEditor(anatomy, [VARIANTS["transformer"]], frames, check=True))
        with holder[0]:
            intercepted = run_model(model, inputs)
    holder[0].finish()
    before, after = dict(tensors_in(plain)), dict(tensors_in(intercepted))
    wrong = [path for path in before if path not in after or not torch.equal(before[path], after[path])]
    if wrong or not before:
        raise RankfallError(f"the intercepted model is not bit-identical to the untouched one: {wrong[:1]}")


def _repeat(value: Any, count: int) -> Any:
    """Repeat every tensor of the inputs `count` times along the batch."""
    if isinstance(value, Tensor):
        return value.repeat(count, *[1] * (value.dim() - 1))
    if isinstance(value, dict):
        return {key: _repeat(item, count) for key, item in value.items()}
    return value


def _tidy(state: Tensor, anatomy: Anatomy, count: int, batch: int) -> Tensor:
    """Reshape (V*B, T, D), (T, V*B, D) or (V*B*T, D) to (V, B, T, D)."""
    if anatomy.batch_axis == 1:
        state = state.transpose(0, 1)
    return state.reshape(count, batch, -1, anatomy.width)


def _nothing(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """Return zeros in the shape of a product whose result is not used."""
    if func is torch.addmm:
        return args[1].new_zeros(args[1].shape[0], args[2].shape[1])
    value = args[0] if args else kwargs["input"]
    weight = args[1] if len(args) > 1 else kwargs["weight"]
    return value.new_zeros(*value.shape[:-1], weight.shape[0])


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value
