"""A recorded forward pass as a graph of nodes and their parents."""

from __future__ import annotations

from rankfall.streams.record import SAME_STATE, Node

JOINS = frozenset({"cat", "concat", "concatenate", "stack"})


class Graph:
    """The ancestors of every node, each set as a bit mask."""

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
        """Return whether `upper` is `lower` or an ancestor of it."""
        return bool(self.up[lower] >> upper & 1)

    def attends_between(self, upper: int, lower: int) -> bool:
        return any(self.above(upper, mix) and self.above(mix, lower) for mix in self.attention)

    def inputs(self, index: int) -> tuple[int, ...]:
        """Return the parents of a node. The parent of a piece of tensors that were joined before, as x of [x, y], is that tensor."""
        node = self.nodes[index]
        if node.part is not None and node.parents:
            place, count = node.part
            joined = self.nodes[self.source(node.parents[0])]
            if joined.op in JOINS and len(joined.parents) == count:
                piece = joined.parents[place]
                if self.nodes[piece].shape == node.shape:
                    return (piece,)
        return node.parents

    def source(self, index: int) -> int:
        """Return the node where this state was computed, looking through changes of layout and dtype and constant factors."""
        while True:
            node = self.nodes[index]
            pieces = self.inputs(index)
            if pieces is not node.parents:
                index = pieces[0]
                continue
            tensors = [
                parent
                for parent in node.parents
                if (not self.nodes[parent].leaf or len(node.parents) == 1)
                and self.nodes[parent].shape not in ((), (1,))
            ]
            scaled = node.op in ("mul", "div") and len(tensors) == 1 and node.op != "leaf"
            if not (node.op in SAME_STATE or scaled) or not tensors:
                return index
            if self.nodes[tensors[0]].shape != node.shape and size_of(self.nodes[tensors[0]]) != size_of(node):
                return index
            index = tensors[0]

    def nearest(self, index: int, targets: set[int]) -> int | None:
        """Return the target that is the fewest operations above a node, or None if no target is above it."""
        visited, front = {index}, [index]
        while front:
            for node in front:
                if node in targets:
                    return node
            parents = dict.fromkeys(parent for node in front for parent in self.nodes[node].parents)
            front = [parent for parent in parents if parent not in visited]
            visited.update(front)
        return None


def size_of(node: Node) -> int:
    total = 1
    for side in node.shape:
        total *= side
    return total
