"""The residual additions of a recorded pass and the streams that they form: chains in which each adds to the sum of the one before.

An addition is residual if one operand is an ancestor of the other: X and f(X), or g(X) X and f(X) with a gate g. It belongs to the
stream of the addition whose sum its state is, up to a norm, a scale or a change of layout. A map in between (a linear map, a
convolution, attention) begins another stream. An addition of a state and an earlier state of its stream, as x + x0, has no branch: it is
a link, like a scale. Rotary positions, recurrences, and values or scores that pass from layer to layer have such additions too, so a
chain inside the branches of another chain is not a stream. A map of a state that is joined with an earlier one, W [x, x0] as in a
U-Net, is a link, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from rankfall.streams.graph import JOINS, Graph, size_of
from rankfall.streams.record import SAME_STATE, Node
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
    found: dict[int, Summand] = {}
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
        if gated is not None and (
            is_skip[0] == is_skip[1] or graph.nodes[gated.state].leaf
        ):  # a leaf is not a mere scale
            found[node.index] = gated
            gated.before = find_link(graph, node, gated.state, found)
            continue
        if is_skip[0] != is_skip[1]:
            skip = 0 if is_skip[0] else 1
            state, branch = node.operands[skip], node.operands[1 - skip]
            if graph.source(branch) == sources[skip] or holds_state(graph, branch, sources[skip], found):
                continue  # x + c x is a scale
            found[node.index] = Summand(node, skip, state, branch, sources[skip])
            found[node.index].before = find_link(graph, node, state, found)
            found[node.index].terms = joined_parts(graph, branch, sources[skip], found)
            continue
        for side in (0, 1):  # (X + A(X)) + M(X): the second branch joins after the first
            earlier, other = found.get(sources[side]), node.operands[1 - side]
            if earlier is not None and not is_skip[0] and graph.above(earlier.source, other):
                found[node.index] = Summand(node, side, node.operands[side], other, earlier.source, parallel=True)
                found[node.index].before = find_link(graph, node, node.operands[side], found)
                break
    return found


def gated_sum(graph: Graph, node: Node) -> Summand | None:
    """Return g X + f(X) as a residual addition if g is computed from X and f(X) not from g alone, as in a highway network; else None."""
    assert node.operands is not None
    if len(node.shape) < 3:  # in two axes, as of a recurrence over time, there may be no tokens
        return None
    for side in (0, 1):
        product, other = gated_operand(graph, node.operands[side]), node.operands[1 - side]
        for state, gate in factors_of(graph, product):
            source = graph.source(state)
            if (
                size_of(graph.nodes[state]) != size_of(node)
                or source == graph.source(gate)
                or not graph.above(source, gate)
            ):
                continue
            terms = [other, *(one for pair in factors_of(graph, gated_operand(graph, other)) for one in pair)]
            if any(
                graph.above(source, one) and not graph.above(gate, one) and graph.source(one) != source for one in terms
            ):
                return Summand(node, side, state, other, source, gate=product)
    return None


def gated_operand(graph: Graph, index: int) -> int:
    """Return the node where an operand was computed, looking through changes of layout and numbers that multiply it."""
    while True:
        node = graph.nodes[index]
        scaled = node.op in PRODUCTS and len(node.parents) == 1
        if not (node.op in SAME_STATE or scaled) or len(node.parents) != 1:
            return index
        index = node.parents[0]


def factors_of(graph: Graph, index: int) -> list[tuple[int, int]]:
    """Return the two factors of a product of tensors in both orders, or an empty list for any other node."""
    node = graph.nodes[index]
    if node.op not in PRODUCTS or len(node.parents) != 2 or node.operation is None:
        return []
    one, other = node.parents
    return [(one, other), (other, one)]


def holds_state(graph: Graph, operand: int, earlier: int, found: dict[int, Summand]) -> bool:
    """Return whether an operand of an addition is a state of a stream that contains the state `earlier`."""
    last = max((one for one in summed_states(graph, graph.source(operand), found) if one in found), default=None)
    while last is not None:
        if earlier in summed_states(graph, found[last].source, found):
            return True
        last = found[last].before
    return False


def summed_states(graph: Graph, source: int, found: dict[int, Summand]) -> set[int]:
    """Return a state and the states of which it is a weighted sum."""
    operands = graph.nodes[source].operands
    if operands is None or source in found:
        return {source}
    return {source}.union(*(summed_states(graph, graph.source(one), found) for one in operands))


def joined_parts(graph: Graph, branch: int, source: int, found: dict[int, Summand]) -> list[int]:
    """Return the additions A + M that join a branch from parts, each computed from the state."""
    join = graph.source(branch)
    node = graph.nodes[join]
    if node.operands is None or node.operation is None or join in found:
        return []
    if any(size_of(graph.nodes[one]) != size_of(node) or not graph.above(source, one) for one in node.operands):
        return []
    if source in map(graph.source, node.operands):
        return []
    return [join] + [term for one in node.operands for term in joined_parts(graph, one, source, found)]


def find_link(graph: Graph, node: Node, state: int, found: dict[int, Summand]) -> int | None:
    """Return the latest addition whose sum a state is, up to a norm, a scale, layout and earlier states."""
    sums = [here for here in without_maps(graph, state, found) if here in found and here != node.index]
    last = max(sums, default=None)
    return last if last is not None and same_width(found[last].node, node) else None


def without_maps(graph: Graph, start: int, stops: Iterable[int] = ()) -> set[int]:
    """Return a node and its ancestors that it reaches without passing a map or one of `stops`. A map of joined states counts as none."""
    seen, front = {start}, [start]
    while front:
        here = front.pop()
        if here in stops or (graph.nodes[here].op in MAPS and not maps_joined(graph, here)):
            continue
        front += [one for one in graph.inputs(here) if one not in seen]
        seen.update(graph.inputs(here))
    return seen


def maps_joined(graph: Graph, index: int) -> bool:
    """Return whether a map reads a state joined with an earlier one along features, from which it is computed."""
    node = graph.nodes[index]
    while True:
        read = [graph.nodes[one] for one in node.parents if not graph.nodes[one].leaf]
        if len(read) != 1 or (node.index != index and node.op in MAPS):
            return False
        node = read[0]
        if node.op in JOINS:
            pieces = [graph.source(one) for one in node.parents if not graph.nodes[one].leaf]
            return any(one != other and graph.above(one, other) for one in pieces for other in pieces)


def same_width(one: Node, other: Node) -> bool:
    """Return whether two states have the same width, so that they can belong to one stream."""
    return (len(one.shape) == len(other.shape) and one.shape[-1] == other.shape[-1]) or size_of(one) == size_of(other)


def chains(graph: Graph, found: dict[int, Summand]) -> list[list[Summand]]:
    """Return the streams, the longest first, each in order of execution."""
    left, streams = dict(found), []
    while left:
        length: dict[int, int] = {}
        for index in sorted(left):
            before = left[index].before
            length[index] = 1 + (length.get(before, 0) if before is not None else 0)
        last: int | None = max(sorted(left), key=lambda index: (length[index], index))
        chain = []
        while last is not None and last in left:
            chain.append(left[last])
            last = left[last].before
        for item in chain:
            del left[item.node.index]
        streams.append(chain[::-1])
    kept = [
        chain
        for chain in streams
        if not any(
            lies_within(graph, chain, other) or is_handed_on(graph, chain, other)
            for other in streams
            if other is not chain
        )
    ]
    longest = max((len(chain) for chain in kept), default=0)
    # a single addition beside a stream is a head, an embedding or a part of a branch
    return [chain for chain in kept if len(chain) > 1 or longest == 1]


def lies_within(graph: Graph, chain: list[Summand], other: list[Summand]) -> bool:
    """Return whether a chain is computed inside one branch of another."""
    if len(other) < min(2, len(chain)) or (len(chain) == len(other) == 1 and chain[0].node.index > other[0].node.index):
        return False
    for item in other:
        inside = (
            graph.above(one.node.index, item.branch) and graph.above(item.source, one.node.index) for one in chain
        )
        if all(inside):
            return True
    return False


def is_handed_on(graph: Graph, chain: list[Summand], other: list[Summand]) -> bool:
    """Return whether a chain lies inside the branches of another, like values and scores that pass from layer to layer.

    Such a chain has another shape or lies deeper in modules. The two halves of a reversible network lie in each other's branches too, and
    both are streams.
    """
    alike = chain[0].node.shape == other[0].node.shape
    if len(other) < len(chain) or (
        alike and min(len(one.node.stack) for one in chain) <= max(len(item.node.stack) for item in other)
    ):
        return False
    return all(
        any(graph.above(item.source, one.node.index) and graph.above(one.node.index, item.branch) for item in other)
        for one in chain
    )


def reaches(graph: Graph, start: int, stop: int, targets: Iterable[int]) -> bool:
    """Return whether one of the targets is an ancestor of `start` on a path around `stop`."""
    wanted, seen, front = set(targets), {start, stop}, [start]
    while front:
        following = []
        for here in front:
            if here in wanted:
                return True
            following += [one for one in graph.nodes[here].parents if one not in seen]
            seen.update(graph.nodes[here].parents)
        front = following
    return False
