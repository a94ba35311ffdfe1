"""The residual additions of a recorded pass and the streams that they form: chains in which each adds to the sum of the one before.

An addition is residual if one operand is an ancestor of the other: X and f(X), or g(X) X and f(X) with a gate g. It belongs to the
stream of the addition whose sum its state is, up to a norm, a scale or a change of layout. A map in between (a linear map, a
convolution, attention) begins another stream. An addition of a state and an earlier state of its stream, as x + x0, has no branch: it is
a link, like a scale. Rotary positions, recurrences, and values or scores that pass from layer to layer have such additions too, so a
chain inside the branches of another chain is not a stream. A map of a state that is joined with an earlier one, W [x, x0] as in a
U-Net, is a link, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from rankfall.streams.record import JOINS, SAME_STATE, Graph, Node, size_of
from rankfall.streams.trace import MAPS

PRODUCTS = frozenset({"mul", "__mul__", "__rmul__", "multiply"})


@dataclass
class Summand:
    """A residual addition with its state and its branch."""

    node: Node
    skip: int  # index of the operand that is the state
    state: int
    branch: int
    source: int  # the node where the branch's input was computed
    parallel: bool = False  # the branch reads what an earlier addition of the layer read
    before: int | None = None  # the addition whose sum the state is
    terms: list[int] = field(default_factory=list)  # additions that join parallel parts of the branch
    gate: int | None = None  # the product of the state and a gate, which is the operand of the addition


def residual_sums(graph: Graph) -> dict[int, Summand]:
    """Return node -> residual addition, for additions of any shape anywhere in the pass."""
    sums: dict[int, Summand] = {}
    for node in graph.nodes:
        if node.operands is None or node.operation is None or len(node.shape) < 2:
            continue
        left, right = (graph.nodes[operand] for operand in node.operands)
        if size_of(left) != size_of(node) or size_of(right) != size_of(node) or node.shape[-1] < 2:
            continue
        sources = (graph.source(left.index), graph.source(right.index))
        is_skip = [
            sources[side] != other.index and graph.above(sources[side], other.index)
            for side, other in ((0, right), (1, left))
        ]
        gated = gated_sum(graph, node)
        # a leaf is not a mere scale
        if gated is not None and (is_skip[0] == is_skip[1] or graph.nodes[gated.state].leaf):
            sums[node.index] = gated
            gated.before = find_link(graph, node, gated.state, sums)
            continue
        if is_skip[0] != is_skip[1]:
            skip = 0 if is_skip[0] else 1
            state, branch = node.operands[skip], node.operands[1 - skip]
            if graph.source(branch) == sources[skip] or holds_state(graph, branch, sources[skip], sums):
                continue  # x + c x is a scale
            sums[node.index] = Summand(node, skip, state, branch, sources[skip])
            sums[node.index].before = find_link(graph, node, state, sums)
            sums[node.index].terms = joined_parts(graph, branch, sources[skip], sums)
            continue
        for side in (0, 1):  # (X + A(X)) + M(X): the second branch joins after the first
            earlier, operand = sums.get(sources[side]), node.operands[1 - side]
            if earlier is not None and not is_skip[0] and graph.above(earlier.source, operand):
                sums[node.index] = Summand(node, side, node.operands[side], operand, earlier.source, parallel=True)
                sums[node.index].before = find_link(graph, node, node.operands[side], sums)
                break
    return sums


def gated_sum(graph: Graph, node: Node) -> Summand | None:
    """Return g X + f(X) as a residual addition if g is computed from X and f(X) not from g alone, as in a highway network; else None."""
    assert node.operands is not None
    if len(node.shape) < 3:  # in two axes, as of a recurrence over time, there may be no tokens
        return None
    for side in (0, 1):
        product, operand = gated_operand(graph, node.operands[side]), node.operands[1 - side]
        for state, gate in factors_of(graph, product):
            source = graph.source(state)
            gated = source != graph.source(gate) and graph.above(source, gate)
            if not gated or size_of(graph.nodes[state]) != size_of(node):
                continue
            terms = [operand, *(factor for pair in factors_of(graph, gated_operand(graph, operand)) for factor in pair)]
            if any(
                graph.above(source, term) and not graph.above(gate, term) and graph.source(term) != source
                for term in terms
            ):
                return Summand(node, side, state, operand, source, gate=product)
    return None


def gated_operand(graph: Graph, index: int) -> int:
    """Return the node where an operand was computed, looking through changes of layout and numbers that multiply it."""
    while True:
        node = graph.nodes[index]
        scaled = node.op in PRODUCTS and len(node.parents) == 1
        if not (node.op in SAME_STATE or scaled) or len(node.parents) != 1:
            return index
        index = node.parents[0]


def factors_of(graph: Graph, index: int) -> list[tuple[int, ...]]:
    """Return the two factors of a product of tensors in both orders, or an empty list for any other node."""
    node = graph.nodes[index]
    if node.op not in PRODUCTS or len(node.parents) != 2 or node.operation is None:
        return []
    return [node.parents, node.parents[::-1]]


def holds_state(graph: Graph, operand: int, earlier: int, sums: dict[int, Summand]) -> bool:
    """Return whether an operand of an addition is a state of a stream that contains the state `earlier`."""
    last = max((index for index in summed_states(graph, graph.source(operand), sums) if index in sums), default=None)
    while last is not None:
        if earlier in summed_states(graph, sums[last].source, sums):
            return True
        last = sums[last].before
    return False


def summed_states(graph: Graph, source: int, sums: dict[int, Summand]) -> set[int]:
    """Return a state and the states of which it is a weighted sum."""
    operands = graph.nodes[source].operands
    if operands is None or source in sums:
        return {source}
    return {source}.union(*(summed_states(graph, graph.source(operand), sums) for operand in operands))


def joined_parts(graph: Graph, branch: int, source: int, sums: dict[int, Summand]) -> list[int]:
    """Return the additions A + M that join a branch from parts, each computed from the state."""
    join = graph.source(branch)
    node = graph.nodes[join]
    if node.operands is None or node.operation is None or join in sums:
        return []
    if any(
        size_of(graph.nodes[operand]) != size_of(node)
        or not graph.above(source, operand)
        or graph.source(operand) == source
        for operand in node.operands
    ):
        return []
    return [join] + [term for operand in node.operands for term in joined_parts(graph, operand, source, sums)]


def find_link(graph: Graph, node: Node, state: int, sums: dict[int, Summand]) -> int | None:
    """Return the latest addition whose sum a state is, up to a norm, a scale, layout and earlier states."""
    reached = [index for index in without_maps(graph, state, sums) if index in sums and index != node.index]
    last = max(reached, default=None)
    if last is None:
        return None
    other = sums[last].node
    same_width = len(other.shape) == len(node.shape) and other.shape[-1] == node.shape[-1]
    return last if same_width or size_of(other) == size_of(node) else None


def without_maps(graph: Graph, start: int, stops: Iterable[int] = ()) -> set[int]:
    """Return a node and its ancestors that it reaches without passing a map or one of `stops`. A map of joined states counts as none."""
    visited, front = {start}, [start]
    while front:
        index = front.pop()
        if index in stops or (graph.nodes[index].op in MAPS and not maps_joined(graph, index)):
            continue
        front += [parent for parent in graph.inputs(index) if parent not in visited]
        visited.update(graph.inputs(index))
    return visited


def maps_joined(graph: Graph, index: int) -> bool:
    """Return whether a map reads a state joined with an earlier one along features, from which it is computed."""
    node = graph.nodes[index]
    while True:
        read = [graph.nodes[parent] for parent in node.parents if not graph.nodes[parent].leaf]
        if len(read) != 1 or (node.index != index and node.op in MAPS):
            return False
        node = read[0]
        if node.op in JOINS:
            pieces = [graph.source(parent) for parent in node.parents if not graph.nodes[parent].leaf]
            return any(earlier != later and graph.above(earlier, later) for earlier in pieces for later in pieces)


def chains(graph: Graph, sums: dict[int, Summand]) -> list[list[Summand]]:
    """Return the streams, the longest first, each in order of execution."""
    remaining, streams = dict(sums), []
    while remaining:
        length: dict[int | None, int] = {}
        for index in sorted(remaining):
            length[index] = 1 + length.get(remaining[index].before, 0)
        last: int | None = max(remaining, key=lambda index: (length[index], index))
        chain = []
        while last is not None and last in remaining:
            chain.append(remaining[last])
            last = remaining[last].before
        for item in chain:
            del remaining[item.node.index]
        streams.append(chain[::-1])
    independent = [
        chain
        for chain in streams
        if not any(
            other is not chain and (lies_within(graph, chain, other) or is_handed_on(graph, chain, other))
            for other in streams
        )
    ]
    longest = max((len(chain) for chain in independent), default=0)
    # a single addition beside a stream is a head, an embedding or a part of a branch
    return [chain for chain in independent if len(chain) > 1 or longest == 1]


def lies_within(graph: Graph, chain: list[Summand], other: list[Summand]) -> bool:
    """Return whether a chain is computed inside one branch of another."""
    if len(other) < min(2, len(chain)) or (len(chain) == len(other) == 1 and chain[0].node.index > other[0].node.index):
        return False
    return any(all(graph.between(item.source, inner.node.index, item.branch) for inner in chain) for item in other)


def is_handed_on(graph: Graph, chain: list[Summand], other: list[Summand]) -> bool:
    """Return whether a chain lies inside the branches of another, like values and scores that pass from layer to layer.

    Such a chain has another shape or lies deeper in modules. The two halves of a reversible network lie in each other's branches too, and
    both are streams.
    """
    alike = chain[0].node.shape == other[0].node.shape
    if len(other) < len(chain) or (
        alike and min(len(inner.node.stack) for inner in chain) <= max(len(item.node.stack) for item in other)
    ):
        return False
    return all(any(graph.between(item.source, inner.node.index, item.branch) for item in other) for inner in chain)


def reaches(graph: Graph, start: int, stop: int, targets: Iterable[int]) -> bool:
    """Return whether one of the targets is an ancestor of `start` on a path around `stop`."""
    goals, visited, front = set(targets), {start, stop}, [start]
    while front:
        index = front.pop()
        if index in goals:
            return True
        front += [parent for parent in graph.nodes[index].parents if parent not in visited]
        visited.update(graph.nodes[index].parents)
    return False


def maps_between(graph: Graph, upper: int, lower: int) -> list[Node]:
    """Return the maps between two states."""
    return [
        node
        for node in graph.nodes[upper + 1 : lower + 1]
        if node.op in MAPS
        and node.stack
        and graph.between(upper, node.index, lower)
        and not maps_joined(graph, node.index)
    ]


def is_resized(graph: Graph, upper: int, lower: int) -> bool:
    """Return whether the number of tokens changes between two states, or the last map between them acts on a code of all tokens."""
    shape, maps = graph.nodes[upper].shape, maps_between(graph, upper, lower)
    coded = bool(maps) and not {*shape[1:-1], math.prod(shape[:-1])} & set(maps[-1].shape)
    return coded or shape != graph.nodes[lower].shape
