"""Detection of the residual connections of a model from the flow of data alone.

An addition a + b of two activations of the residual stream's shape is a residual connection if one operand is an ancestor
of the other: the state X and f(X). The ancestor is the skip, the other operand the branch. The branch is attention if a
softmax mixes tokens on the way from X to it, and an MLP otherwise. Sums of embeddings have no such order between their
operands, and position terms do not have the shape, so neither counts. In blocks that run both branches side by side,
X + A(X) + M(X), one addition joins the branches ("join") and one adds the state ("attention"). Removing the latter takes
the state away from both branches.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from rankfall.models.anatomy import ATTENTION, JOIN, MLP
from rankfall.streams.graph import Graph, size_of
from rankfall.streams.record import Node


@dataclass
class Addition:
    """A residual addition whose layer is not known yet."""

    node: Node
    kind: str
    skip: int
    state: int  # node of the state operand
    branch: int
    lineage: int  # the nearest addition above this node determines the residual stream
    residual_stream: int = 0


def candidates(graph: Graph, batch: int, width: int) -> list[Node]:
    """Return the additions of two non-leaf tensors of the residual stream's shape: width last, and the size that most
    such additions have.
    """
    found = []
    for node in graph.nodes:
        if node.operation is None or node.operands is None or len(node.shape) < 2 or node.shape[-1] != width:
            continue
        left, right = (graph.nodes[operand] for operand in node.operands)
        if left.leaf or right.leaf or size_of(left) != size_of(right) or size_of(left) != size_of(node):
            continue
        if size_of(node) % (batch * width) == 0:
            found.append(node)
    usual = Counter(size_of(node) for node in found).most_common(1)
    return [node for node in found if size_of(node) == usual[0][0]]  # a pooling head has other sizes


def classify(graph: Graph, candidates: list[Node]) -> list[Addition]:
    """Return the candidates that are residual connections, in order of execution."""
    found: list[Addition] = []
    by_node: dict[int, Addition] = {}
    sums = {node.index: node for node in candidates}
    for node in candidates:
        assert node.operands is not None
        left, right = node.operands
        before = (graph.source(left), graph.source(right))
        is_skip = (
            before[0] != right and graph.above(before[0], right),
            before[1] != left and graph.above(before[1], left),
        )
        if is_skip[0] != is_skip[1]:
            skip = 0 if is_skip[0] else 1
            state, branch = node.operands[skip], node.operands[1 - skip]
            source = before[skip]
            kind = ATTENTION if graph.attends_between(source, branch) else MLP
            join = sums.get(before[1 - skip])
            if kind == ATTENTION and join is not None and join.index not in by_node:
                side = _mlp_side(graph, join, source)
                if side is not None:
                    assert join.operands is not None
                    by_node[join.index] = Addition(
                        join, JOIN, 1 - side, join.operands[1 - side], join.operands[side], source
                    )
                    found.append(by_node[join.index])
            by_node[node.index] = Addition(node, kind, skip, state, branch, source)
            found.append(by_node[node.index])
            continue
        if is_skip[0]:
            continue
        for side in (0, 1):  # (X + A(X)) + M(X): the MLP joins after the state did
            earlier = by_node.get(before[side])
            other = node.operands[1 - side]
            if earlier is None or earlier.kind != ATTENTION:
                continue
            source = graph.source(earlier.state)
            if graph.above(source, other) and not graph.attends_between(source, other):
                by_node[node.index] = Addition(node, JOIN, side, node.operands[side], other, node.operands[side])
                found.append(by_node[node.index])
                break
    return found


def _mlp_side(graph: Graph, join: Node, source: int) -> int | None:
    """Return which operand of an addition is the MLP if the other is the attention and both are computed from `source`;
    None for any other addition.
    """
    assert join.operands is not None
    if not all(graph.above(source, operand) for operand in join.operands):
        return None
    attends = [graph.attends_between(source, operand) for operand in join.operands]
    if attends[0] == attends[1]:
        return None
    return 1 if attends[0] else 0


def assign_streams(graph: Graph, found: list[Addition]) -> int:
    """Assign every addition to the residual stream of the addition that its state comes from, and return the number of
    streams. A state without an addition before it starts a new stream.
    """
    nodes: dict[int, Addition] = {}
    starts: dict[int, int] = {}
    count = 0
    for item in found:
        last = graph.nearest(item.lineage, set(nodes))
        if last is not None:
            item.residual_stream = nodes[last].residual_stream
        elif item.lineage in starts:  # the second addition of a first parallel block reads what its join read
            item.residual_stream = starts[item.lineage]
        else:
            item.residual_stream, count = count, count + 1
        starts[item.lineage] = item.residual_stream
        nodes[item.node.index] = item
    return count
