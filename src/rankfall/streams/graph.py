"""A recorded forward pass as a graph of nodes and their parents."""

from __future__ import annotations

from rankfall.streams.record import SAME_STATE, Node


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

    def source(self, index: int) -> int:
        """Return the node where this state was computed, looking through changes of layout and dtype and constant factors."""
        while True:
            node = self.nodes[index]
            tensors = [parent for parent in node.parents if not self.nodes[parent].leaf or len(node.parents) == 1]
            scaled = node.op in ("mul", "div") and len(tensors) == 1 and node.op != "leaf"
            if not (node.op in SAME_STATE or scaled) or not tensors:
                return index
            if self.nodes[tensors[0]].shape != node.shape and size_of(self.nodes[tensors[0]]) != size_of(node):
                return index
            index = tensors[0]

    def nearest(self, index: int, targets: set[int]) -> int | None:
        """Return the target that is the fewest operations above a node, or None if no target is above it."""
        seen, front = {index}, [index]
        while front:
            for here in front:
                if here in targets:
                    return here
            parents = dict.fromkeys(parent for here in front for parent in self.nodes[here].parents)
            front = [parent for parent in parents if parent not in seen]
            seen.update(front)
        return None


def size_of(node: Node) -> int:
    total = 1
    for side in node.shape:
        total *= side
    return total
