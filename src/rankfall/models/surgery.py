"""The layers of a model of the library, and passes that leave out parts of them.

One recorded pass of two samples gives the residual stream, which must agree with the config: an attention and an MLP in each layer. Several
variants may share one pass, each on its part of the batch, so that streamed weights are fetched once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from rankfall.errors import RankfallError
from rankfall.streams.arguments import Arguments, NoStream, first_size, run_model
from rankfall.streams.branches import attends, draft, finish_flow, one_sided
from rankfall.streams.cuts import Variant, cut_by
from rankfall.streams.editor import run_through
from rankfall.streams.examine import trace_pass, verify_pass
from rankfall.streams.flow import MIXES, TOKENWISE, Flow
from rankfall.streams.frames import Operation
from rankfall.streams.layers import Group, group_layers
from rankfall.streams.mixing import TokenMixing
from rankfall.streams.record import Graph
from rankfall.streams.sums import Summand, chains, residual_sums
from rankfall.streams.trace import PRODUCT, ModelTracer


@dataclass(frozen=True)
class ModelStream:
    """The residual stream of a model. Which tokens a branch mixes is not tested, so the directions in `flow` are not known."""

    flow: Flow
    batch_axis: int  # of a state: 0, or 1 where it is (T, B, D)
    unused: frozenset[Operation]  # products that feed MLPs alone

    def turn(self, state: Tensor) -> Tensor:
        """Turn a state (B, T, D) to the model's layout, or back."""
        return state.transpose(0, 1) if self.batch_axis == 1 else state


def find_stream(model: nn.Module, inputs: dict[str, Any], *, width: int, layers: int) -> tuple[ModelStream, Any]:
    """Return the stream of a model and its output from one pass. The pass needs two samples, since an axis of size 1 may be dropped."""
    arguments = Arguments((), inputs)
    batch = first_size(arguments)
    tracer, output = trace_pass(model, arguments, ModelTracer)
    graph = Graph(tracer.nodes)
    chosen = [chain for chain in chains(graph, residual_sums(graph)) if chain[0].node.shape[-1] == width]
    if not chosen:
        raise NoStream(
            f"no residual addition of width {width} found in {len(graph.nodes)} operations; the model hides its "
            "residual stream (fused kernels?) or has none"
        )
    # in XLNet this is the content stream, not that of queries
    chain = max(chosen, key=lambda chain: (len(chain), -chain[0].node.index))
    mixes = {item.node.index: attends(graph, item) for item in chain}
    grouped = group_layers(graph, chain, model, mixes)
    sides = {number: TokenMixing(parts=mixing_sides(graph, item)) for number, item in enumerate(chain)}
    flow = finish_flow(graph, tracer, chain, grouped, sides, draft(graph, tracer, chain), batch)
    check_layers(flow, layers, len(chosen))
    state = graph.nodes[chain[0].state].shape
    axis = 1 if len(state) == 3 and state[0] != batch and state[1] == batch else 0
    return ModelStream(flow, axis, unused_products(graph, chain)), output


def mixing_sides(graph: Graph, item: Summand) -> dict[int, list[bool]]:
    """Return, for each addition that joins two parts of a branch, whether its operands attend."""
    return {
        number: [graph.attends_between(item.source, operand) for operand in graph.nodes[term].operands or ()]
        for number, term in enumerate(item.terms)
    }


def check_layers(flow: Flow, layers: int, streams: int) -> None:
    """Raise an error unless the config's number of layers have an attention and an MLP, one after the other or side by side."""
    shapes = [
        [branch.kind for branch in group] + [TOKENWISE] * sum(len(branch.parts) for branch in group)
        for group in map(flow.of_layer, range(1, flow.depth + 1))
    ]
    if shapes == [[MIXES, TOKENWISE]] * layers and not flow.outside:
        return
    kinds = ["attention" if branch.kind == MIXES else "mlp" for branch in flow.branches]
    tally = ", ".join(f"{kinds.count(kind)} {kind}" for kind in ("attention", "mlp") if kind in kinds)
    places = [f"{kind} in {branch.operation.call}" for kind, branch in zip(kinds[:6], flow.branches)]
    raise NoStream(
        f"cannot identify this model's residual additions: expected an attention and an MLP addition in each of {layers} layers, found "
        f"{len(kinds)} ({tally}) in {flow.depth} layers of {streams} residual stream(s): {'; '.join(places)}{' ...' * (len(kinds) > 6)}"
    )


def unused_products(graph: Graph, chain: Group) -> frozenset[Operation]:
    """Return the products between a state and an MLP that nothing else in the layer needs. A pass without MLPs skips them."""
    unused: set[Operation] = set()
    for item in chain:
        cuts = [] if attends(graph, item) else [(item.branch, item.state, item.parallel)]
        for term in item.terms:
            operands = graph.nodes[term].operands or ()
            side = one_sided([graph.attends_between(item.source, operand) for operand in operands])
            if side is not None:
                cuts.append((operands[side], operands[1 - side], True))
        for branch, state, beside in cuts:
            source = graph.source(state)
            for node in graph.nodes:
                if node.operation is None or node.operation.kind != PRODUCT or not graph.above(node.index, branch):
                    continue
                if not graph.above(node.index, state) and (beside or graph.above(source, node.index)):
                    unused.add(node.operation)
    return frozenset(unused)


def cut(
    model: nn.Module,
    stream: ModelStream,
    inputs: dict[str, Any],
    variants: Sequence[Variant],
    *,
    sink: Callable[[int, Tensor], None] | None = None,
) -> list[Tensor]:
    """Return the states of layers 0..L, each (V, B, T, D), of all variants in one pass over the weights.

    A `sink` receives each (layer, state) as soon as it exists, and nothing is kept.
    """
    flow, arguments, count = stream.flow, Arguments((), inputs), len(variants)
    batch = first_size(arguments)

    def by_variant(state: Tensor) -> Tensor:
        """Reshape (V*B, T, D), (T, V*B, D) or (V*B*T, D) to (V, B, T, D)."""
        return stream.turn(state).reshape(count, batch, -1, flow.width)

    edits = cut_by(*variants, axis=stream.batch_axis, unused=stream.unused)
    if sink is not None:
        edits.sink = lambda layer, state: sink(layer, by_variant(state))
    if count > 1:
        arguments = arguments.map(lambda tensor: tensor.repeat(count, *[1] * (tensor.dim() - 1)))
    return [by_variant(state) for state in run_through(model, arguments, flow, edits).states]


def verify(model: nn.Module, stream: ModelStream, inputs: dict[str, Any], plain: Any = None) -> None:
    """Raise an error unless the intercepted pass without cuts equals the plain pass bit by bit. `plain`: its output, if it is known."""
    plain = run_model(model, inputs) if plain is None else plain
    result = verify_pass(model, Arguments((), inputs), stream.flow, plain)
    for layer, end in enumerate(stream.flow.ends[:-1], 1):
        state = result.states[layer]
        if end is not None and not torch.equal(result.exits[layer].reshape(state.shape), state):
            raise RankfallError(f"the state is changed between layers {layer} and {layer + 1}")
