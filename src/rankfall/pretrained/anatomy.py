"""Which additions of a model are its residual connections, found from the flow of data alone.

An addition a + b of two activations of the stream's shape is a residual connection where one operand is an ancestor
of the other: the state X and f(X). The ancestor is the skip, the other the branch. The branch is attention if
tokens are mixed by a softmax on the way from X to it, and an MLP otherwise. Embedding sums have no such order
between their operands, position terms do not have the shape, so neither is taken for one. In blocks that run both
branches side by side, X + A(X) + M(X), one addition joins the branches ("join") and one adds the state
("attention"; its removal takes the state away from both).

What is found has to be what the config says, two additions a layer in the right order, or the model is refused with
what was found.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from rankfall.errors import RankfallError
from rankfall.pretrained.frames import Call, Place
from rankfall.pretrained.record import SAME_STATE, Node

ATTENTION, MLP, JOIN = "attention", "mlp", "join"
Outputs = dict[Call, list[tuple[tuple[Any, ...], int]]]  # what every call returned: the way to each tensor, its node


@dataclass(frozen=True)
class Site:
    """One addition of the residual stream."""

    place: Place
    kind: str  # attention | mlp | join
    skip: int  # which operand, 0 or 1, is the state; in a join: which operand is not the MLP
    layer: int  # 1, 2, ...
    stream: int  # 0; XLNet's second stream is 1
    shape: tuple[int, ...]  # as traced


@dataclass(frozen=True)
class Exit:
    """Where the state leaves a layer: which part of what its module returns."""

    call: Call
    path: tuple[Any, ...]
    stream: int
    layer: int


@dataclass(frozen=True)
class Anatomy:
    """All that surgery needs to know about a model."""

    sites: dict[Place, Site]
    exits: tuple[Exit, ...]
    layers: int
    width: int
    streams: int
    batch_axis: int  # of the state: 0, or 1 where it is (T, B, D)
    parallel: bool  # attention and MLP side by side, one skip for both
    removable: frozenset[Place]  # products that only feed MLP branches

    def summary(self) -> str:
        """One line: what was found."""
        kinds = [site.kind for site in self.sites.values()]
        parts = [f"{kinds.count(kind)} {kind}" for kind in (ATTENTION, MLP, JOIN) if kind in kinds]
        return f"{len(kinds)} residual additions in {self.layers} layers ({', '.join(parts)}), width {self.width}"


@dataclass
class _Found:
    """A candidate addition, before it has a layer."""

    node: Node
    kind: str
    skip: int
    state: int  # node of the state operand
    branch: int
    lineage: int  # the nearest addition above this node tells the stream
    stream: int = 0


class _Graph:
    """Ancestor sets as bit masks, and the questions asked of them."""

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes
        self.up: list[int] = []  # ancestors of each node, itself included
        for node in nodes:
            mask = 1 << node.index
            for parent in node.parents:
                mask |= self.up[parent]
            self.up.append(mask)
        self.attention = [node.index for node in nodes if node.attends]

    def above(self, upper: int, lower: int) -> bool:
        """Whether `upper` is an ancestor of `lower`, or the same."""
        return bool(self.up[lower] >> upper & 1)

    def attends_between(self, upper: int, lower: int) -> bool:
        return any(self.above(upper, mix) and self.above(mix, lower) for mix in self.attention)

    def source(self, index: int) -> int:
        """Back through layout, dtype and constant factors to the operation that made this state."""
        while True:
            node = self.nodes[index]
            tensors = [parent for parent in node.parents if not self.nodes[parent].leaf]
            scaled = node.op in ("mul", "div") and len(tensors) == 1 and node.op != "leaf"
            if not (node.op in SAME_STATE or scaled) or not tensors:
                return index
            if self.nodes[tensors[0]].shape != node.shape and _size(self.nodes[tensors[0]]) != _size(node):
                return index
            index = tensors[0]

    def nearest(self, index: int, targets: set[int]) -> int | None:
        """The target that is fewest operations above a node."""
        seen, front = {index}, [index]
        while front:
            for here in front:
                if here in targets:
                    return here
            parents = dict.fromkeys(parent for here in front for parent in self.nodes[here].parents)
            front = [parent for parent in parents if parent not in seen]
            seen.update(front)
        return None


def _size(node: Node) -> int:
    total = 1
    for side in node.shape:
        total *= side
    return total


def _candidates(graph: _Graph, batch: int, width: int) -> list[Node]:
    """Additions of two non-leaf tensors of the shape of the stream: width last, and the size that most such
    additions have.
    """
    found = []
    for node in graph.nodes:
        if node.place is None or node.operands is None or len(node.shape) < 2 or node.shape[-1] != width:
            continue
        left, right = (graph.nodes[operand] for operand in node.operands)
        if left.leaf or right.leaf or _size(left) != _size(right) or _size(left) != _size(node):
            continue
        if _size(node) % (batch * width) == 0:
            found.append(node)
    usual = Counter(_size(node) for node in found).most_common(1)
    return [node for node in found if _size(node) == usual[0][0]]  # a pooling head has other sizes


def _classify(graph: _Graph, candidates: list[Node]) -> list[_Found]:
    """The candidates that are residual connections, in order of execution."""
    found: list[_Found] = []
    by_node: dict[int, _Found] = {}
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
                    by_node[join.index] = _Found(
                        join, JOIN, 1 - side, join.operands[1 - side], join.operands[side], source
                    )
                    found.append(by_node[join.index])
            by_node[node.index] = _Found(node, kind, skip, state, branch, source)
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
                by_node[node.index] = _Found(node, JOIN, side, node.operands[side], other, node.operands[side])
                found.append(by_node[node.index])
                break
    return found


def _mlp_side(graph: _Graph, join: Node, source: int) -> int | None:
    """Which operand of an addition is the MLP when the other is the attention, both made from `source`; None if it
    is no such sum.
    """
    assert join.operands is not None
    if not all(graph.above(source, operand) for operand in join.operands):
        return None
    attends = [graph.attends_between(source, operand) for operand in join.operands]
    if attends[0] == attends[1]:
        return None
    return 1 if attends[0] else 0


def _streams(graph: _Graph, found: list[_Found]) -> int:
    """Gives every addition the stream of the addition that its state comes from; a state with none before it starts
    one.
    """
    nodes: dict[int, _Found] = {}
    starts: dict[int, int] = {}
    count = 0
    for item in found:
        last = graph.nearest(item.lineage, set(nodes))
        if last is not None:
            item.stream = nodes[last].stream
        elif item.lineage in starts:  # the second addition of a first parallel block reads what its join read
            item.stream = starts[item.lineage]
        else:
            item.stream, count = count, count + 1
        starts[item.lineage] = item.stream
        nodes[item.node.index] = item
    return count


def dissect(nodes: list[Node], outputs: Outputs, *, batch: int, width: int, layers: int) -> Anatomy:
    """Reads a recorded pass. Raises with what was found where it is not two residual additions in each of `layers`
    layers.
    """
    graph = _Graph(nodes)
    found = _classify(graph, _candidates(graph, batch, width))
    streams = _streams(graph, found)
    if not found:
        raise RankfallError(
            f"no residual addition of width {width} found in {len(nodes)} operations; the model hides its "
            "residual stream (fused kernels?) or has none"
        )
    parallel = any(item.kind == JOIN for item in found)
    sites: dict[Place, Site] = {}
    members: dict[tuple[int, int], list[_Found]] = {}
    for stream in range(streams):
        chain = [item for item in found if item.stream == stream]
        if len(chain) != 2 * layers:
            raise RankfallError(_refusal(found, layers, streams))
        for position, item in enumerate(chain):
            members.setdefault((stream, position // 2 + 1), []).append(item)
    for (stream, layer), pair in members.items():
        kinds = [item.kind for item in pair]
        if kinds not in ([ATTENTION, MLP], [JOIN, ATTENTION], [ATTENTION, JOIN]):
            raise RankfallError(_refusal(found, layers, streams))
        for item in pair:
            assert item.node.place is not None
            sites[item.node.place] = Site(item.node.place, item.kind, item.skip, layer, stream, item.node.shape)
    if len(sites) != len(found):
        raise RankfallError("two residual additions share one place: modules are called without their hooks")
    additions = {item.node.index for item in found}
    exits = tuple(_exit(graph, outputs, additions, pair, key) for key, pair in members.items())
    state = nodes[members[0, 1][0].state].shape
    batch_axis = 1 if len(state) == 3 and state[0] != batch and state[1] == batch else 0
    return Anatomy(sites, exits, layers, width, streams, batch_axis, parallel, _removable(graph, found))


def _exit(graph: _Graph, outputs: Outputs, additions: set[int], pair: list[_Found], key: tuple[int, int]) -> Exit:
    """The innermost module call that holds both additions of a layer, and the part of its output that is the state."""
    stream, layer = key
    common = [a for a, b in zip(pair[0].node.stack, pair[1].node.stack) if a == b]
    last = pair[1].node.index
    later = additions - {last}
    for call in reversed(common):
        for path, node in outputs.get(call, []):
            same_size = _size(graph.nodes[node]) == _size(graph.nodes[last])
            between = any(graph.above(last, other) and graph.above(other, node) for other in later)
            if graph.above(last, node) and same_size and not between:
                return Exit(call, path, stream, layer)
    looked = ", ".join(map(str, common))
    raise RankfallError(f"layer {layer}: no module returns the state after its two additions (looked at {looked})")


def _removable(graph: _Graph, found: list[_Found]) -> frozenset[Place]:
    """Products between a state and an MLP branch that nothing else in the layer needs: not computed when the MLP is
    removed.
    """
    places = set()
    for item in found:
        if item.kind == ATTENTION:
            continue
        state = graph.source(item.state)
        for node in graph.nodes:
            if node.place is None or node.place.sort != "product" or not graph.above(node.index, item.branch):
                continue
            if not graph.above(node.index, item.state) and (item.kind == JOIN or graph.above(state, node.index)):
                places.add(node.place)
    return frozenset(places)


def _refusal(found: list[_Found], layers: int, streams: int) -> str:
    lines = []
    for item in found[:6]:
        assert item.node.place is not None
        lines.append(f"{item.kind} in {item.node.place.call}")
    kinds = [item.kind for item in found]
    tally = ", ".join(f"{kinds.count(kind)} {kind}" for kind in (ATTENTION, MLP, JOIN) if kind in kinds)
    return (
        "cannot tell this model's residual additions apart: expected an attention and an MLP addition in each of "
        f"{layers} layers, found {len(found)} ({tally}) in {streams} stream(s): {'; '.join(lines)}"
        f"{' ...' if len(found) > 6 else ''}"
    )
