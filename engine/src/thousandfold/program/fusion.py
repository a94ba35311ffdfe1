"""Fusion of pointwise nodes to groups, so that intermediate results stay in registers.

A group begins with a node and grows along the nodes that use it. A node joins if it has as many numbers, if its dimensions have common
atoms with those of the group, if it reads results of the group in the order in which they are written, and if its other inputs are done or
their nodes can join too. Sums of results of a group run at its end. A group runs at the position of its first node.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from thousandfold.codes import PW, RED, SUM
from thousandfold.program.atoms import View, collapse, cuts_of, run_strides
from thousandfold.program.draft import ProgramNode

Divide = Callable[[Sequence[int], Sequence[int]], Any]
MOST = 48  # largest number of nodes in a group
WITH_SUMS = 56
STREAMS = 24  # largest number of tensors that a group reads from memory
WAITED = 12  # largest number of nodes that join because another needs them


def fuse(nodes: Sequence[ProgramNode], results: Iterable[int], divide: Divide | None = None) -> list[list[int]]:
    """Return groups of nodes in the order in which they run, without nodes that no result needs. `results`: buffers of results. `divide`
    returns from the sizes and strides of a sum how threads divide it, or None if it cannot be fused; the sums of a group must be divided
    alike."""
    return Fusion(nodes, frozenset(results), divide).groups()


@dataclass
class FusedNodes:
    members: list[int]
    cuts: set[int]  # sizes of the inner parts of the iteration space
    streams: set[int] = field(default_factory=set)  # values read from memory

    def copy(self) -> "FusedNodes":
        return FusedNodes(list(self.members), set(self.cuts), set(self.streams))


def fit(cuts: Iterable[int]) -> bool:
    """Return whether one refinement has all these inner parts."""
    edges = sorted(cuts)
    return not any(b % a for a, b in pairwise(edges))


def reads_in_order(node: ProgramNode, k: int) -> bool:
    """Return whether input k is read in the order in which a whole value is written."""
    sizes, (strides,) = collapse(node.order, [node.strides[k]])
    return sizes in ([math.prod(node.order)], []) and strides in ([1], [])


class Fusion:
    def __init__(self, nodes: Sequence[ProgramNode], results: frozenset[int], divide: Divide | None) -> None:
        self.nodes, self.divide = nodes, divide
        self.done: set[int] = set()
        self.writers: dict[int, list[int]] = {}  # value -> nodes that write to it
        for i, node in enumerate(nodes):
            self.writers.setdefault(id(node.out.value), []).append(i)
        # Node -> nodes whose results it reads.
        self.waits = [
            sorted({w for x in node.ins if isinstance(x, View) for w in self.writers.get(id(x.value), ()) if w < i})
            for i, node in enumerate(nodes)
        ]
        live: set[int] = set()
        todo = [i for i, node in enumerate(nodes) if node.out.value.place and node.out.value.place[0] in results]
        while todo:
            i = todo.pop()
            if i not in live:
                live.add(i)
                todo += [*self.waits[i], *self.writers[id(nodes[i].out.value)]]
        self.users: dict[int, list[int]] = {i: [] for i in live}  # live node -> live nodes that read from it
        for i in sorted(live):
            for before in self.waits[i]:
                self.users[before].append(i)

    def is_whole(self, i: int) -> bool:
        """Return whether the node alone writes a whole value."""
        out = self.nodes[i].out
        return out.offset == 0 and len(self.writers[id(out.value)]) == 1

    def groups(self) -> list[list[int]]:
        groups = []
        for i in sorted(self.users):
            if i not in self.done:
                groups.append(self.group_of(i))
        return groups

    def group_of(self, i: int) -> list[int]:
        self.done.add(i)
        node = self.nodes[i]
        if node.kind != PW or not self.is_whole(i):
            return [i]
        streams = {id(x.value) for x in node.ins if isinstance(x, View)}
        group = FusedNodes([i], {1} | cuts_of(node.order), streams)
        while len(group.members) < MOST and self.grow(group):
            pass
        self.add_sums(group)
        return group.members

    def grow(self, group: FusedNodes) -> bool:
        """Add users of the group's nodes. Return False if none fits."""
        size, grown = math.prod(self.nodes[group.members[0]].order), False
        for member in list(group.members):
            for user in self.users[member]:
                chain: list[int] = []
                if user in self.done or not self.add_needed(user, size, chain):
                    continue
                before = group.copy()
                if all(self.admit(group, node) for node in chain):
                    grown = True
                    continue
                self.done.difference_update(group.members[len(before.members) :])
                group.members, group.cuts, group.streams = before.members, before.cuts, before.streams
        return grown

    def add_needed(self, i: int, size: int, chain: list[int]) -> bool:
        """Append a node to `chain`, after the nodes that it needs. Return False if one of them cannot be in a group of this size."""
        if i in self.done or i in chain:
            return True
        node = self.nodes[i]
        fits = node.kind == PW and math.prod(node.order) == size and self.is_whole(i)
        if not fits or len(chain) > WAITED or not all(self.add_needed(w, size, chain) for w in self.waits[i]):
            return False
        chain.append(i)
        return True

    def admit(self, group: FusedNodes, i: int) -> bool:
        node = self.nodes[i]
        cuts = group.cuts | cuts_of(node.order)
        inside = {id(self.nodes[member].out.value) for member in group.members}
        views = [x for x in node.ins if isinstance(x, View)]
        made_here = [(k, x) for k, x in enumerate(views) if id(x.value) in inside]
        streams = group.streams | ({id(x.value) for x in views} - inside)
        if not fit(cuts) or len(streams) > STREAMS:
            return False
        if not all(x.offset == 0 and reads_in_order(node, k) for k, x in made_here):
            return False
        group.members.append(i)
        group.cuts, group.streams = cuts, streams
        self.done.add(i)
        return True

    def add_sums(self, group: FusedNodes) -> None:
        """Add sums of results of a group that are read in the order in which they are written."""
        size, shares = math.prod(self.nodes[group.members[0]].order), set[Any]()
        for member in list(group.members):
            for user in self.users[member]:
                node = self.nodes[user]
                if (
                    user in self.done
                    or node.kind != RED
                    or node.fields["kind"] != SUM
                    or len(group.members) > WITH_SUMS
                ):
                    continue
                order = node.fields["order"]
                whole = node.ins[0].offset == 0 and math.prod(order) == size and self.is_whole(user)
                cuts = group.cuts | cuts_of(order)
                share = self.divide(order, node.fields["written"]) if self.divide else ()
                if whole and node.fields["read"] == run_strides(order) and fit(cuts) and share is not None:
                    if len(shares | {share}) > 1:
                        continue
                    shares.add(share)
                    group.members.append(user)
                    group.cuts = cuts
                    self.done.add(user)
