"""A pass of a model that is observed and edited along one residual stream."""

from __future__ import annotations

from dataclasses import dataclass, field
from traceback import clear_frames
from typing import Any

import torch
from torch import Tensor, nn

from rankfall.streams.arguments import Arguments, call_model
from rankfall.streams.editor import Editor
from rankfall.streams.edits import Edits, Enough
from rankfall.streams.flow import Branch, Flow
from rankfall.streams.frames import Frames


@dataclass
class PassResult:
    """The results of a pass."""

    states: list[Tensor] = field(default_factory=list)  # of layers 0 .. L, in the model's own shape
    output: Any = None
    # layer -> the tensor that leaves it and that later layers read
    exits: dict[int, Tensor] = field(default_factory=dict)


def run_through(model: nn.Module, arguments: Arguments, flow: Flow, edits: Edits, *, grad: bool = False) -> PassResult:
    """Run one pass with edits. With `grad`, its tensors can be differentiated."""
    holder: list[Editor] = []
    with (
        torch.set_grad_enabled(grad),
        Frames(model, on_exit=lambda *call: holder[0].leave(*call)) as frames,
    ):
        holder.append(Editor(flow, edits, frames))
        try:
            with holder[0]:
                output = call_model(model, arguments)
        except Enough as end:
            clear_frames(end.__traceback__)  # or the pass's tensors stay in memory until Python looks for cycles
            return PassResult(holder[0].finish() if holder[0].met else [], None, holder[0].exits)
    return PassResult(holder[0].finish(), output, holder[0].exits)


def collect_sums(model: nn.Module, arguments: Arguments, flow: Flow) -> dict[int, Tensor]:
    """Return the state after each addition of the unedited model, by number of branch, in the model's shape."""
    sums: dict[int, Tensor] = {}

    def keep(branch: Branch, state: Tensor, value: Tensor) -> None:
        sums[branch.number] = state + value if flow.skips else value.clone()

    run_through(model, arguments, flow, Edits(edit=keep))
    return sums
