"""The layers of a watched model: those that `rankfall check` finds, or a list of blocks where a pass cannot be recorded.

The finder of `streams/` runs once, in the first pass, on a copy of the model and two samples. Sharded, compiled and large models have no
such copy. Then the layers are the blocks that the user names, or the modules of one class in the list with the most weights.
"""

from __future__ import annotations

import math
import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import torch
from torch import Tensor, nn

from rankfall.errors import RankfallError
from rankfall.streams.arguments import Arguments, NoStream, call_model, first_size, keep_random_state
from rankfall.streams.editor import Editor
from rankfall.streams.examine import Examined, examine
from rankfall.streams.flow import Edits, Flow
from rankfall.streams.frames import Call, Frames
from rankfall.streams.names import describe_classes, inner_modules, unwrap
from rankfall.streams.trace import ADD

LISTS = (nn.ModuleList, nn.ModuleDict)  # never called
SAMPLES = 2  # enough to tell samples from tokens
MOST_WORK = 2**36  # weights x tokens; a dozen passes of more take minutes on a processor


@dataclass(frozen=True)
class WatchedLayers:
    """Names and modules of the layers, in order. Without a `flow`, they are blocks that return their states."""

    names: tuple[str, ...]
    modules: tuple[nn.Module | None, ...]  # None: the layer is no module
    flow: Flow | None = None
    root: nn.Module | None = None  # whose residual stream it is
    # their number in each call that holds an addition of the stream
    additions: Mapping[Call, int] = field(default_factory=dict)
    others: tuple[str, ...] = ()  # other streams

    def summary(self) -> str:
        classes = {type(unwrap(module)).__name__ for module in self.modules if module is not None}
        kinds = sorted(classes or {"residual layer"})
        ends = f"{self.names[0]} .. {self.names[-1]}" if len(self.names) > 1 else self.names[0]
        others = f"; not watched: {', '.join(self.others)}" if self.others else ""
        return f"{len(self.names)} x {' / '.join(kinds)} ({ends}{others})"


def find_layers(
    model: nn.Module, called: nn.Module, args: Any, kwargs: Mapping[str, Any], blocks: Sequence[str]
) -> WatchedLayers:
    """Return the layers of the longest residual stream of a module in the model that is called with these arguments.

    `blocks`: names of modules that are the layers, if the user names them.
    """
    root, named = unwrap(called), dict(inner_modules(model))
    if is_sharded(root):
        raise NoStream("its weights are spread over processes")
    prefix = next((f"{name}." for name, module in named.items() if module is root and name), "")
    wanted = re.compile("|".join(re.escape(name.removeprefix(prefix)) for name in blocks)) if blocks else None
    whole = Arguments(tuple(args), dict(kwargs))
    batch = first_size(whole)
    few = whole.map(lambda tensor: tensor[:SAMPLES] if tensor.dim() and tensor.shape[0] == batch else tensor)
    if work_of(root, few) > MOST_WORK:
        raise NoStream("a copy of it would take long to record")
    with without_hooks(root):
        try:
            examined = examine(root, few, blocks=wanted, shaped=False)
        except RankfallError:  # the first axis is not that of samples
            if batch <= SAMPLES or work_of(root, whole) > MOST_WORK:
                raise
            examined = examine(root, whole, blocks=wanted, shaped=False)
        flow, *others = examined.flows
        if flow.around:  # what its layers return is no state
            raise NoStream(flow.missing[0])
        additions = count_additions(examined, flow)
    names = tuple(f"{prefix}{name}" for name in flow.layers)
    modules = tuple(named.get(name) for name in names)
    return WatchedLayers(names, modules, flow, root, additions, tuple(other.name for other in others))


def is_sharded(model: nn.Module) -> bool:
    """Return whether a weight is a DTensor, of which each process holds a part."""
    return any(hasattr(weight, "full_tensor") for weight in model.parameters())


@contextmanager
def without_hooks(model: nn.Module) -> Iterator[None]:
    """Hide the user's forward hooks, which would also see the passes of a copy. Those of PyTorch compute weights."""
    hidden = []
    for module in model.modules():
        for name in ("_forward_hooks", "_forward_pre_hooks"):
            hooks = getattr(module, name)
            kept = {key: hook for key, hook in hooks.items() if type(hook).__module__.startswith("torch.nn.")}
            if len(kept) < len(hooks):
                hidden.append((module, name, hooks))
                setattr(module, name, OrderedDict(kept))
    try:
        yield
    finally:
        for module, name, hooks in hidden:
            setattr(module, name, hooks)


def work_of(module: nn.Module, arguments: Arguments) -> int:
    """Return the number of weights times the number of tokens."""
    first: Tensor = arguments.tensors()[0]
    tokens = math.prod(first.shape[:-1] if first.is_floating_point() and first.dim() > 1 else first.shape)
    return tokens * sum(weight.numel() for weight in module.parameters())


def count_additions(examined: Examined, flow: Flow) -> dict[Call, int]:
    """Return the number of additions in each call that holds an addition of the stream, by which another pass can be compared."""
    with keep_random_state(), torch.no_grad(), Frames(examined.model) as frames, Editor(flow, Edits(), frames):
        call_model(examined.model, examined.arguments)
    return {branch.operation.call: frames.counts[branch.operation.call][ADD] for branch in flow.branches}


def list_blocks(model: nn.Module) -> dict[str, nn.Module]:
    """Return the longest run of one class in the list of modules whose run has the most weights, by name; empty if there is none.

    The parts of a block, such as its experts, have fewer weights than all blocks.
    """
    runs: list[dict[str, nn.Module]] = []
    for name, module in inner_modules(model):
        if isinstance(module, (nn.ModuleList, nn.Sequential)):
            children = {f"{name}.{child}".strip("."): unwrap(part) for child, part in module.named_children()}
            for _, run in groupby(children.items(), key=lambda child: type(child[1])):
                runs.append({child: part for child, part in run if can_be_block(part)})
    weights = [sum(weight.numel() for part in run.values() for weight in part.parameters()) for run in runs]
    best = max(zip(runs, weights), key=lambda scored: (len(scored[0]) > 1, scored[1]), default=({}, 0))
    return best[0]


def can_be_block(module: nn.Module) -> bool:
    """Return whether a module can be a block: it is called, has weights, and is no single operation of PyTorch."""
    single = type(module).__module__.startswith("torch.nn.modules") and not any(True for _ in module.children())
    return not isinstance(module, LISTS) and not single and next(module.parameters(), None) is not None


def refuse_model(model: nn.Module, error: RankfallError) -> RankfallError:
    """Return the error for a model whose layers are not found and that has no list of blocks."""
    named = dict(inner_modules(model))
    return RankfallError(
        f"no layers were found in {type(named['']).__name__}: {error}. There are {describe_classes(named)}; name the layers, such as "
        "blocks='layers.*'"
    )


def outer_modules(model: nn.Module, blocks: Mapping[str, nn.Module]) -> tuple[nn.Module, ...]:
    """Return the modules whose calls are passes: those that contain blocks, or the model and its children."""
    if not blocks:
        around = [model, *model.children()]
        return tuple(
            module for module in around if any(True for _ in module.children()) and not isinstance(module, LISTS)
        )
    members = set(map(id, blocks.values()))
    inside = {id(part) for block in blocks.values() for part in block.modules()}
    return tuple(
        module
        for module in model.modules()
        if id(module) not in inside
        and not isinstance(module, LISTS)
        and any(id(part) in members for part in module.modules())
    )
