"""Encoding of nodes as instructions: int64 words in the layout that the kernels read."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from thousandfold.codes import BMM, GATHER, GEN, LIN, MASK, PW, RED, SCATTER, WGRAD
from thousandfold.program.atoms import View
from thousandfold.program.draft import ProgramNode
from thousandfold.program.emit_pointwise import bits, group_words, place_of


def emit(nodes: Sequence[ProgramNode], groups: Sequence[Sequence[int]]) -> np.ndarray:
    words: list[int] = []
    for group in groups:
        some = [nodes[i] for i in group]
        kind = some[0].kind
        body = group_words(some) if kind == PW else WORDS[kind](some[0])
        words += [kind, len(body) + 2, *(int(word) for word in body)]
    return np.array(words, np.int64)


def body(views: Sequence[View], sizes: Iterable[Any], node: ProgramNode, tables: str) -> list[Any]:
    """Return the places of operands, the sizes, and the tables with these names."""
    places = [word for view in views for word in place_of(view)]
    return [*places, *sizes, *(word for name in tables.split() for word in node.what[name])]


def lengths(node: ProgramNode, tables: str) -> list[int]:
    return [len(node.what[name]) for name in tables.split()]


def sums(node: ProgramNode) -> list[Any]:
    w = node.what
    sizes = [len(w["io"]), w["run"], len(w["ro"]), w["neighbours"], bits(w["scale"])]
    return [w["kind"], *body([node.out, *node.ins], sizes, node, "io oo ro")]


def linear(node: ProgramNode) -> list[Any]:
    w, biased = node.what, len(node.ins) > 2
    x, weights = (node.ins[1], node.ins[0]) if w["swapped"] else node.ins[:2]
    bias = place_of(node.ins[2]) if biased else (0, 0)
    columns = w.get("bias", np.zeros(len(w["nw"]), np.int64))
    sizes = [*bias, int(biased), *lengths(node, "nw kx rx"), w["run"]]
    return [*body([x, weights, node.out], sizes, node, "kx kw nw nc"), *columns, *body([], [], node, "rx rw rc")]


def weight_gradient(node: ProgramNode) -> list[Any]:
    sizes = [*lengths(node, "ma nb ka"), node.what["run"]]
    return body([*node.ins, node.out], sizes, node, "ma nb mc ka kb")


def product(node: ProgramNode) -> list[Any]:
    w, sizes = node.what, lengths(node, "oa ma nb ka")
    if node.kind == BMM:
        sizes = [w["la"], w["lb"], *sizes, w["lanes"]]
    return body([*node.ins, node.out], sizes, node, "oa ob oc ma ka nb kb mc nc")


def gather(node: ProgramNode) -> list[Any]:
    sizes = [*lengths(node, "io xd"), node.what["stride"]]
    return body([*node.ins, node.out], sizes, node, "io xo oo xd od")


def scatter(node: ProgramNode) -> list[Any]:
    w = node.what
    sizes = [w["zeros"], w["adds"], *lengths(node, "io xd"), w["stride"]]
    return body([node.out, *node.ins], sizes, node, "io xo vo xd vd")


def mask(node: ProgramNode) -> list[Any]:
    w = node.what
    sizes = [w["site"], w["threshold"], bits(w["scale"]), w["size"], len(w["from"]), w["run"], w["stride"]]
    return body([node.out], sizes, node, "from into")


WORDS: dict[int, Callable[[ProgramNode], list[Any]]] = {
    RED: sums,
    LIN: linear,
    WGRAD: weight_gradient,
    BMM: product,
    GEN: product,
    GATHER: gather,
    SCATTER: scatter,
    MASK: mask,
}
