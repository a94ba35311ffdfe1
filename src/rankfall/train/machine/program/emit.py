"""Nodes as instructions: int64 words, whose layout `codes.py` and the functions that run them agree on."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rankfall.train.machine.codes import BMM, CUMSUM, GATHER, GEN, LIN, MASK, PW, RED, SCATTER, WGRAD
from rankfall.train.machine.program.draft import ProgramNode
from rankfall.train.machine.program.emit_pointwise import bits, group_words, place_of


def emit(nodes: Sequence[ProgramNode], groups: Sequence[Sequence[int]]) -> np.ndarray:
    words: list[int] = []
    for group in groups:
        some = [nodes[i] for i in group]
        kind = some[0].kind
        body = group_words(some) if kind == PW else WORDS[kind](some[0])
        words += [kind, len(body) + 2, *(int(word) for word in body)]
    return np.array(words, np.int64)


def sums(node: ProgramNode) -> list[Any]:
    w = node.what
    head = [
        w["kind"],
        *place_of(node.out),
        *place_of(node.ins[0]),
        len(w["io"]),
        w["run"],
        len(w["ro"]),
        w["neighbours"],
    ]
    return [*head, bits(w["scale"]), *w["io"], *w["oo"], *w["ro"]]


def linear(node: ProgramNode) -> list[Any]:
    w = node.what
    x, weights = (node.ins[1], node.ins[0]) if w["swapped"] else node.ins[:2]
    bias = place_of(node.ins[2]) if len(node.ins) > 2 else (0, 0)
    columns = w.get("bias", np.zeros(len(w["nw"]), np.int64))
    head = [*place_of(x), *place_of(weights), *place_of(node.out), *bias, int(len(node.ins) > 2)]
    sizes = [len(w["nw"]), len(w["kx"]), len(w["rx"]), w["run"]]
    return [*head, *sizes, *w["kx"], *w["kw"], *w["nw"], *w["nc"], *columns, *w["rx"], *w["rw"], *w["rc"]]


def weight_gradient(node: ProgramNode) -> list[Any]:
    w = node.what
    head = [
        *place_of(node.ins[0]),
        *place_of(node.ins[1]),
        *place_of(node.out),
        len(w["ma"]),
        len(w["nb"]),
        len(w["ka"]),
        w["run"],
    ]
    return [*head, *w["ma"], *w["nb"], *w["mc"], *w["ka"], *w["kb"]]


def product(node: ProgramNode) -> list[Any]:
    w, lanes = node.what, node.kind == BMM
    head = [*place_of(node.ins[0]), *place_of(node.ins[1]), *place_of(node.out), *([w["la"], w["lb"]] if lanes else [])]
    sizes = [len(w["oa"]), len(w["ma"]), len(w["nb"]), len(w["ka"]), *([w["lanes"]] if lanes else [])]
    tables = ("oa", "ob", "oc", "ma", "ka", "nb", "kb", "mc", "nc")
    return [*head, *sizes, *(word for name in tables for word in w[name])]


def gather(node: ProgramNode) -> list[Any]:
    w = node.what
    head = [
        *place_of(node.ins[0]),
        *place_of(node.ins[1]),
        *place_of(node.out),
        len(w["io"]),
        len(w["xd"]),
        w["stride"],
    ]
    return [*head, *w["io"], *w["xo"], *w["oo"], *w["xd"], *w["od"]]


def scatter(node: ProgramNode) -> list[Any]:
    w = node.what
    head = [*place_of(node.out), *place_of(node.ins[0]), *place_of(node.ins[1]), w["zeros"], w["adds"]]
    return [*head, len(w["io"]), len(w["xd"]), w["stride"], *w["io"], *w["xo"], *w["vo"], *w["xd"], *w["vd"]]


def running_sum(node: ProgramNode) -> list[Any]:
    w = node.what
    return [
        *place_of(node.ins[0]),
        *place_of(node.out),
        len(w["io"]),
        len(w["xk"]),
        *w["io"],
        *w["oo"],
        *w["xk"],
        *w["ok"],
    ]


def mask(node: ProgramNode) -> list[Any]:
    w = node.what
    head = [
        *place_of(node.out),
        w["site"],
        w["threshold"],
        bits(w["scale"]),
        w["size"],
        len(w["from"]),
        w["run"],
        w["stride"],
    ]
    return [*head, *w["from"], *w["into"]]


WORDS: dict[int, Callable[[ProgramNode], list[Any]]] = {
    RED: sums,
    LIN: linear,
    WGRAD: weight_gradient,
    BMM: product,
    GEN: product,
    GATHER: gather,
    SCATTER: scatter,
    CUMSUM: running_sum,
    MASK: mask,
}
