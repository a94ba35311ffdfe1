"""The optimiser's step of a member as a program: clip the gradient, then apply the optimiser's operations to the row of the member.

Values that differ between members (learning rate, decay, clip) and numbers that change from step to step are inputs. A program serves all
steps with the same operations. If a number turns out to change, the program is written again with this number as an input, which changes no
bit. Weights and slots are updated in place: `check_order` makes sure that none is read after it was written.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from thousandfold.codes import FIRST_SLOT, GRAD, NORM, PARAM, PW, RATES
from thousandfold.graph import AtenGraph, Ref, Untraceable, replace_in
from thousandfold.optimizers import Optimizer, Rows
from thousandfold.program.atoms import Unsupported, Value, View, contiguous
from thousandfold.program.build import Program, finish, lower
from thousandfold.program.draft import ProgramDraft, ProgramNode
from thousandfold.program.fusion import Divide, reads_in_order
from thousandfold.record import OfNumber, OperationNode, OptimizerRecorder, record

NORM_EPS = 1e-6  # as in `Rows.update`
LR, DECAY, CLIP = range(3)  # positions in RATES
OF_MEMBER = 3
SLOTS = (FIRST_SLOT, FIRST_SLOT + 1, NORM + 1, NORM + 2)
CHANGING, CHANGES = NORM + 3, 64  # buffer of numbers that change with the step, and its size
LOOKED_AT = (1, 2, 3, 1000)  # steps whose numbers are compared in advance


@dataclass(eq=False)
class DescentProgram:
    """A program for one list of operations, and their numbers at the step for which it was written."""

    program: Program
    numbers: list[float]
    changing: list[int]  # positions of the numbers that are inputs


@dataclass
class Descent:
    """The programs of one optimiser, for rows of `weights` numbers."""

    optimizer: Optimizer
    weights: int
    decays: bool
    clips: bool
    dtype: torch.dtype
    divide: Divide | None = None  # see `fuse`
    programs: dict[Any, DescentProgram] = field(default_factory=dict)  # by the last operation, and what inputs become
    root: OperationNode = field(default_factory=OperationNode)

    @staticmethod
    def for_members(members: Rows, divide: Divide | None = None) -> "Descent":
        """Return the programs of the members' optimiser. Raise `Untraceable` if it cannot be traced."""
        if len(members.slots) > len(SLOTS):
            raise Untraceable(f"an optimiser with {len(members.slots)} slots")
        settings = members.decay is not None, members.clip is not None
        descent = Descent(
            deepcopy(members.optimizer), members.weights.shape[1], *settings, members.weights.dtype, divide
        )
        for t in LOOKED_AT:
            descent.at(t)
        return descent

    def at(self, t: int) -> tuple[Program, np.ndarray]:
        """Return the program of step t and its changing numbers (CHANGES,)."""
        recorded = record(self.optimizer, self.weights, self.decays, self.dtype, t, self.root)
        numbers, key = recorded.numbers, (recorded.last, recorded.results)
        entry = self.programs.get(key)
        if entry is None:
            entry = DescentProgram(self.write_program(recorded, []), numbers, [])
            self.programs[key] = entry
        pairs = enumerate(zip(entry.numbers, numbers))
        new = [i for i, (before, now) in pairs if before != now and i not in entry.changing]
        if new:
            entry.changing += new
            entry.program = self.write_program(recorded, entry.changing)
        values = np.zeros(CHANGES)
        values[: len(entry.changing)] = [numbers[i] for i in entry.changing]
        return entry.program, values

    def write_program(self, recorded: OptimizerRecorder, changing: Sequence[int]) -> Program:
        try:
            return self.program(recorded, changing)
        except Unsupported as error:
            raise Untraceable(f"the optimiser: {error}") from error
        except (KeyError, TypeError, AttributeError) as error:
            reason = f"no program can be written of it ({type(error).__name__}: {error})"
            raise Untraceable(f"the optimiser: {reason}") from error

    def program(self, recorded: OptimizerRecorder, changing: Sequence[int]) -> Program:
        """Lower the recorded operations. The numbers at positions in `changing` are inputs, the others constants."""
        draft, shape = ProgramDraft(), (1, self.weights)
        if len(changing) > CHANGES:
            raise Unsupported(f"{len(changing)} numbers that change with the step")
        row = lambda buffer: contiguous(Value(self.weights, (buffer, 0)), shape)  # noqa: E731
        scalar = lambda buffer, place: View(Value(1, (buffer, place)), 0, ((), ()))  # noqa: E731
        slots = [row(buffer) for buffer in SLOTS[: self.optimizer.slots]]
        gradient = row(GRAD)
        if self.clips:
            norm = draft.pointwise("ADD", [scalar(NORM, 0), NORM_EPS], (1, 1))
            factor = draft.pointwise("MINI", [draft.pointwise("DIV", [scalar(RATES, CLIP), norm], (1, 1)), 1.0], (1, 1))
            gradient = draft.pointwise("MUL", [gradient, factor], shape)
        inputs = [row(PARAM), gradient, *slots, scalar(RATES, LR), None, scalar(RATES, DECAY)][: len(recorded.results)]

        def number(x: OfNumber) -> Any:
            changes = x.place in changing
            return View(Value(1, (CHANGING, changing.index(x.place))), 0, ()) if changes else recorded.numbers[x.place]

        graph = AtenGraph(recorded.forms, input_count=len(inputs))
        for node in recorded.nodes:
            assert node.operation is not None
            args, kwargs = replace_in((node.operation.args, node.operation.kwargs), OfNumber, number)
            if node.operation.target._schema.name == "aten::pow" and isinstance(args[1], View):
                raise Unsupported("a power that changes with the step")
            graph.operations.append(replace(node.operation, args=args, kwargs=kwargs))
        changed = {
            buffer: Ref(recorded.results[i])
            for i, buffer in zip((0, *range(2, 2 + len(slots))), (PARAM, *SLOTS))
            if recorded.results[i] != i
        }
        graph.results = list(changed.values())
        for buffer, value in zip(changed, lower(draft, graph, inputs, self.dtype)):
            draft.write(value, (buffer, 0), shape)
        return finish(draft, (PARAM, *SLOTS), check_order, self.divide)


def check_order(nodes: Sequence[ProgramNode]) -> None:
    """Raise if a node reads weights or slots that an earlier node has overwritten, or reads them out of order, where an earlier block may
    have overwritten them. `nodes` are in the order in which they run."""
    buffers, written = (PARAM, *SLOTS), set[int]()
    for node in nodes:
        views = [x for x in node.ins if isinstance(x, View)]
        for k, x in enumerate(views):
            if x.value.place is None or x.value.place[0] not in buffers or x.value.first >= 0:
                continue
            in_order = node.kind != PW or (not x.offset and reads_in_order(node, k))
            if x.value.place[0] in written or not in_order:
                raise Unsupported("weights or slots are read after they are written")
        if node.out.value.place is not None:
            written.add(node.out.value.place[0])
