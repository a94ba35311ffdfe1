"""The anatomy of a model, read from one recorded forward pass.

The additions must agree with the config: two in each layer, in the right order. Otherwise the model is refused, and the error
lists the additions.
"""

from __future__ import annotations

from typing import Any

from torch import nn

from rankfall.errors import RankfallError
from rankfall.models.additions import Addition, assign_streams, candidates, classify
from rankfall.models.anatomy import ATTENTION, JOIN, MLP, Anatomy, Exit, Site
from rankfall.streams.forward import batch_of, run_model
from rankfall.streams.frames import Call, Frames, Operation
from rankfall.streams.graph import Graph, size_of
from rankfall.streams.record import ModelRecorder, Node

Outputs = dict[
    Call, list[tuple[tuple[Any, ...], int]]
]  # of every call: the path to each tensor that it returned, and the tensor's node


def study(model: nn.Module, inputs: dict[str, Any], *, width: int, layers: int) -> Anatomy:
    """Return the anatomy of a model from one pass on a small batch (two samples or more)."""
    return watch(model, inputs, width=width, layers=layers)[0]


def watch(model: nn.Module, inputs: dict[str, Any], *, width: int, layers: int) -> tuple[Anatomy, Any]:
    """Return the anatomy of a model, as `study` does, and the model's output. Recording changes no number."""
    batch = batch_of(inputs)
    if batch < 2:
        raise ValueError("the anatomy is read from two samples or more: one could be mistaken for a missing axis")
    holder: list[ModelRecorder] = []
    with Frames(model, on_exit=lambda *exit_: holder[0].left(*exit_)) as frames:
        holder.append(ModelRecorder(frames))
        with holder[0]:
            output = run_model(model, inputs)
    return dissect(holder[0].nodes, holder[0].outputs, batch=batch, width=width, layers=layers), output


def dissect(nodes: list[Node], outputs: Outputs, *, batch: int, width: int, layers: int) -> Anatomy:
    """Return the anatomy from a recorded pass; raise an error unless each of `layers` layers has two residual additions."""
    graph = Graph(nodes)
    found = classify(graph, candidates(graph, batch, width))
    residual_streams = assign_streams(graph, found)
    if not found:
        raise RankfallError(
            f"no residual addition of width {width} found in {len(nodes)} operations; the model hides its "
            "residual stream (fused kernels?) or has none"
        )
    parallel = any(item.kind == JOIN for item in found)
    sites: dict[Operation, Site] = {}
    members: dict[tuple[int, int], list[Addition]] = {}
    for residual_stream in range(residual_streams):
        chain = [item for item in found if item.residual_stream == residual_stream]
        if len(chain) != 2 * layers:
            raise RankfallError(_refusal(found, layers, residual_streams))
        for position, item in enumerate(chain):
            members.setdefault((residual_stream, position // 2 + 1), []).append(item)
    for (residual_stream, layer), pair in members.items():
        kinds = [item.kind for item in pair]
        if kinds not in ([ATTENTION, MLP], [JOIN, ATTENTION], [ATTENTION, JOIN]):
            raise RankfallError(_refusal(found, layers, residual_streams))
        for item in pair:
            assert item.node.operation is not None
            sites[item.node.operation] = Site(
                item.node.operation, item.kind, item.skip, layer, residual_stream, item.node.shape
            )
    if len(sites) != len(found):
        raise RankfallError("two residual additions have the same name: modules are called without their hooks")
    additions = {item.node.index for item in found}
    exits = tuple(_exit(graph, outputs, additions, pair, key) for key, pair in members.items())
    state = nodes[members[0, 1][0].state].shape
    batch_axis = 1 if len(state) == 3 and state[0] != batch and state[1] == batch else 0
    return Anatomy(sites, exits, layers, width, residual_streams, batch_axis, parallel, _removable(graph, found))


def _exit(graph: Graph, outputs: Outputs, additions: set[int], pair: list[Addition], key: tuple[int, int]) -> Exit:
    """Return the innermost module call that holds both additions of a layer, and the part of its output that is the state."""
    residual_stream, layer = key
    common = [a for a, b in zip(pair[0].node.stack, pair[1].node.stack) if a == b]
    last = pair[1].node.index
    later = additions - {last}
    for call in reversed(common):
        for path, node in outputs.get(call, []):
            same_size = size_of(graph.nodes[node]) == size_of(graph.nodes[last])
            between = any(graph.above(last, other) and graph.above(other, node) for other in later)
            if graph.above(last, node) and same_size and not between:
                return Exit(call, path, residual_stream, layer)
    looked = ", ".join(map(str, common))
    raise RankfallError(f"layer {layer}: no module returns the state after its two additions (looked at {looked})")


def _removable(graph: Graph, found: list[Addition]) -> frozenset[Operation]:
    """Return the products between a state and an MLP branch that nothing else in the layer needs. A pass without the MLP
    skips them.
    """
    removable = set()
    for item in found:
        if item.kind == ATTENTION:
            continue
        state = graph.source(item.state)
        for node in graph.nodes:
            if node.operation is None or node.operation.kind != "product" or not graph.above(node.index, item.branch):
                continue
            if not graph.above(node.index, item.state) and (item.kind == JOIN or graph.above(state, node.index)):
                removable.add(node.operation)
    return frozenset(removable)


def _refusal(found: list[Addition], layers: int, residual_streams: int) -> str:
    lines = []
    for item in found[:6]:
        assert item.node.operation is not None
        lines.append(f"{item.kind} in {item.node.operation.call}")
    kinds = [item.kind for item in found]
    tally = ", ".join(f"{kinds.count(kind)} {kind}" for kind in (ATTENTION, MLP, JOIN) if kind in kinds)
    return (
        "cannot identify this model's residual additions: expected an attention and an MLP addition in each of "
        f"{layers} layers, found {len(found)} ({tally}) in {residual_streams} residual stream(s): {'; '.join(lines)}"
        f"{' ...' if len(found) > 6 else ''}"
    )
