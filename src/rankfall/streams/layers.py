"""Assignment of a stream's residual additions to layers.

Modules that the user names are the layers. Without names, layers are repeated modules: the outermost list of modules, or calls of one
class, over which a stream is spread. If the additions stand in the forward of a model without modules for its layers, a layer is the
shortest part that repeats.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby

from torch import nn

from rankfall.streams.frames import Call
from rankfall.streams.record import Graph
from rankfall.streams.sums import Summand

Group = list[Summand]
Path = list[tuple[str, int]]
Stack = tuple[Call, ...]
Keyed = list[tuple[tuple[str, int], Group]]


def group_layers(
    graph: Graph, chain: list[Summand], model: nn.Module, mixes: dict[int, bool]
) -> list[tuple[str, Group]]:
    """Return (name of the layer, its additions) in order. Additions before or after the layers are left out."""
    paths = {index: path_of(stack) for index, stack in places(graph, chain, model).items()}
    layers = spread(chain, 0, paths, model, mixes)
    # a single layer takes the name of the module that holds it
    if len(layers) == 1 and layers[0][0].startswith("addition "):
        ways = [[name for name, _ in paths[item.node.index] if name] for item in layers[0][1]]
        common = [names[0] for names in zip(*ways) if len(set(names)) == 1]
        layers = [(common[-1], layers[0][1])] if common else layers
    return layers


def places(graph: Graph, chain: Group, model: nn.Module) -> dict[int, Stack]:
    """Return the calls around each addition. If layers leave the sum to the next layer, return those around its branch instead."""
    added = {item.node.index: item.node.stack for item in chain}
    computed = {item.node.index: graph.nodes[graph.source(item.branch)].stack for item in chain}
    later = any(made_before(path_of(computed[index]), path_of(stack), model) for index, stack in added.items())
    return computed if later else added


def made_before(computed: Path, added: Path, model: nn.Module) -> bool:
    """Return whether a branch is computed in one layer and added in the next, as with layers that return (branch, state)."""
    computing, adding = next(((a, b) for a, b in zip(computed, added) if a != b), (None, None))
    return computing is not None and family(computing, model) == family(adding, model)


def path_of(stack: Stack) -> Path:
    """Return the path from the model to a call: calls of modules, and the lists that hold them."""
    path: Path = []
    for call in stack:
        parts = call.module.split(".") if call.module else []
        start = len(path[-1][0].split(".")) if path and path[-1][0] else 0
        for end in range(start + 1, len(parts)):
            if parts[end - 1].isdigit():  # a list of modules, which is never called
                path.append((".".join(parts[:end]), -1))
        path.append((call.module, call.number))
    return path


def spread(
    chain: Group, depth: int, paths: dict[int, Path], model: nn.Module, mixes: dict[int, bool]
) -> list[tuple[str, Group]]:
    """Descend to the depth where the additions are spread over several modules, and return the layers."""

    def at(item: Summand) -> tuple[str, int] | None:
        path = paths[item.node.index]
        return path[depth] if depth < len(path) else None

    groups = [(key, list(items)) for key, items in groupby(chain, key=at)]
    if len(groups) == 1:
        if groups[0][0] is None:
            return periods(chain, mixes)
        return spread(chain, depth + 1, paths, model, mixes)
    named = [(key, items) for key, items in groups if key is not None]
    repeated = [family(key, model) for key, _ in named]
    usual = max(repeated, key=lambda kind: (repeated.count(kind), -repeated.index(kind))) if repeated else None
    layers = [(key, items) for (key, items), kind in zip(named, repeated) if kind == usual]
    if len(layers) > 1:
        layers = with_others(named, repeated, [key for key, _ in layers], model)
    if len(layers) < 2:  # the parts are not alike: the one with the most additions holds the layers
        key, largest = max(groups, key=lambda group: len(group[1]))
        if key is None or len(largest) < 2 or all(len(items) == 1 for _, items in groups):
            return periods(chain, mixes)
        return spread(largest, depth + 1, paths, model, mixes)
    # one addition each, attention and MLP in turn: these are parts of layers
    if len({tuple(mixes[item.node.index] for item in items) for _, items in layers}) > 1 and all(
        len(items) == 1 for _, items in layers
    ):
        return periods([item for _, items in layers for item in items], mixes)
    refined: list[tuple[str, Group]] = []
    for key, items in layers:
        inner = spread(items, depth + 1, paths, model, mixes) if len(items) > 1 else []
        kinds = [tuple(mixes[item.node.index] for item in part) for _, part in inner]
        # a stage of blocks has parts that are alike, each with more than one addition
        undivided = (
            len(inner) < 2 or min(map(len, kinds)) < 2 or len(set(kinds)) > 1 or sum(map(len, kinds)) < len(items)
        )
        refined += [(key[0] if key else "", items)] if undivided or inner[0][0].startswith("addition ") else inner
    return refined


def with_others(named: Keyed, families: list[str], usual: list[tuple[str, int]], model: nn.Module) -> Keyed:
    """Return the usual layers and further layers of the stream: those of the same class, and those in another list of modules.

    Their states must have the same shape: layers over time after layers over space have other tokens.
    """
    classes = {type(model.get_submodule(name)) for name, _ in usual}
    shapes = {items[0].node.shape for key, items in named if key in usual}
    return [
        (key, items)
        for (key, items), kind in zip(named, families)
        if key in usual
        or (
            items[0].node.shape in shapes and (type(model.get_submodule(key[0])) in classes or families.count(kind) > 1)
        )
    ]


def family(key: tuple[str, int] | None, model: nn.Module) -> str:
    """Return the key that alike calls share: the list of modules that holds them, or else their class."""
    name = key[0] if key else ""
    if re.search(r"(^|\.)\d+$", name):
        return re.sub(r"\d+$", "#", name)
    return type(model.get_submodule(name)).__name__


def periods(chain: Group, mixes: dict[int, bool]) -> list[tuple[str, Group]]:
    """Return layers of additions that no module holds: the shortest repeated pattern of kinds, else from one mixer to the next."""
    kinds = [mixes[item.node.index] for item in chain]
    starts = [n for n, kind in enumerate(kinds) if kind and (n == 0 or not kinds[n - 1])]
    period = next(
        (p for p in range(1, len(kinds) // 2 + 1) if len(kinds) % p == 0 and kinds == kinds[:p] * (len(kinds) // p)),
        None,
    )
    if period is not None:
        starts = list(range(0, len(kinds), period))
    starts = starts if starts and starts[0] == 0 else [0, *starts]
    ends = [*starts[1:], len(chain)]
    return [(f"addition {a + 1}" + (f" to {b}" if b > a + 1 else ""), chain[a:b]) for a, b in zip(starts, ends)]


def in_blocks(graph: Graph, chain: Group, model: nn.Module, blocks: Iterable[str]) -> list[tuple[str, Group]]:
    """Return the layers by the calls of the named modules."""
    chosen, calls = set(blocks), places(graph, chain, model)

    def at(item: Summand) -> Call | None:
        return next((call for call in calls[item.node.index] if call.module in chosen), None)

    return [(key.module, list(items)) for key, items in groupby(chain, key=at) if key is not None]
