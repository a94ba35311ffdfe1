"""What a step of the fused engine spends its time in: each kernel by itself, in all layers of a network, in the room of a real step.

    python -m benchmarks.kernels "sorting transformer converged 6"

prints microseconds of one thread, with the rate of products of matrices, beside the same tile on matrices that stay in the first cache, and
PyTorch's product. Of networks with norms after the blocks, softmax attention and gelu, or no MLP. The rest is the embedding, the head, the
loss, and what kernels take longer one after another than again and again. All are measured in turn, many times, and the least is shown: a
machine's speed drifts.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from benchmarks import networks
from benchmarks.limits import WIDTH, product
from rankfall.train.fused.arithmetic import f32, gelu, gelu_inputs
from rankfall.train.fused.attention import attend, attend_inputs, mix, mix_inputs, softmax_inputs
from rankfall.train.fused.blocks import joined, thinned
from rankfall.train.fused.compiled import entry
from rankfall.train.fused.descent import adam
from rankfall.train.fused.engine import Fused
from rankfall.train.fused.form import GELU, INNER, NORM1, OUTER
from rankfall.train.fused.masks import dropped
from rankfall.train.fused.norm import layer_norm, layer_norm_inputs
from rankfall.train.fused.products import linear, linear_inputs, linear_inputs_add, linear_weights, multiply, start
from rankfall.train.fused.step import draw_all
from rankfall.train.fused.tile import LANES, WEIGHTS

PARTS = (
    *("scores and weights", "mixing", "mixing, backward", "scores, backward"),
    *("softmax, backward", "norms", "norms, backward", "residuals and dropout"),
    *("MLP", "gelu", "gelu, backward", "MLP, gradients of weights", "MLP, backward"),
    *("masks of dropout", "Adam"),
)
STEP, TILE, THEIRS = "the step", "the tile in the first cache", "PyTorch's product"
MEMBERS = 16  # of the step, whose time is shown for one: what Python does between steps is shared by them
IN_CACHE = 48, 64  # rows and terms of the product that stays in the first cache


@entry
def run(part, times, w, g, first, second, at, turns, key, sites, form, room, work):  # type: ignore[no-untyped-def]
    """One of PARTS, in every layer."""
    shape, eps, one = (form.heads * form.tokens, form.row), f32(form.eps), f32(1)
    for _ in range(times):
        for layer in range(form.depth if part < 13 else 0):
            a, x, p = at[layer], room.states[layer], room.weights[layer]
            q, k, v, bits = room.q[layer], room.k[layer], room.v[layer], room.bits_weights[layer]
            gains = a[NORM1 : NORM1 + 2]
            if part == 0:
                attend(w, a, x, turns, form.turned, work.added, form.added, form.sequences, q, k, v, work.scores, p)
            elif part == 1:
                mix(w, a, p, v, form.sequences, room.contexts[layer], work.one)
            elif part == 2:
                mix_inputs(w, g, a, work.two, p, v, room.contexts[layer], form.sequences, work.dscores, work)
            elif part == 3:
                attend_inputs(
                    w, g, a, x, turns, form.turned, q, k, work.dscores, form.sequences, work.d[layer % 2], work
                )
            elif part == 4:
                softmax_inputs(p, work.dscores, one, form.added, form.sequences, work.scores, work.dadded)
            for _ in range(1 if form.activation != GELU else 2):  # behind the attention, and behind the MLP
                if part == 5:
                    layer_norm(work.one, w, gains, eps, room.white1[layer], room.inverse1[layer], work.three)
                elif part == 6:
                    layer_norm_inputs(room.white1[layer], room.inverse1[layer], w, g, gains, work.two, work.three, 0)
                elif part == 7:
                    joined(x, 1.0, work.one, room.bits_attention[layer], 1.0, form, work.three)
                    thinned(work.two, room.bits_attention[layer], 1.0, form, work.three)
            if part == 7 and form.drop_scale > 0:
                dropped(p.reshape(shape), bits, f32(form.drop_scale), room.dropped[layer].reshape(shape))
                dropped(p.reshape(shape), bits, f32(form.drop_scale), work.scores.reshape(shape))
            if form.activation != GELU:
                continue
            inner, outer = a[INNER : INNER + 2], a[OUTER : OUTER + 2]
            if part == 8:
                linear(w, inner, room.middle[layer], room.h[layer])
                linear(w, outer, room.a[layer], work.one)
            elif part == 9:
                gelu(room.h[layer], room.a[layer])
            elif part == 10:
                gelu_inputs(room.h[layer], work.da, work.dh)
            elif part == 11:
                linear_weights(room.a[layer], work.two, g, outer, 0, work.transposed)
                linear_weights(room.middle[layer], work.dh, g, inner, 0, work.transposed)
            elif part == 12:
                linear_inputs(w, outer, work.two, work.da)
                linear_inputs_add(w, inner, work.dh, work.d[layer % 2])
        if part == 13 and form.drop_scale > 0:
            draw_all(key, sites, 0, form, room, work)
        elif part == 14:
            adam(w, g, first, second, one, f32(1e-9), f32(0), f32(0.1), f32(0.999), f32(0.001), f32(1e-8), one, one)


@entry
def run_in_cache(times, a, b, c, rows, terms):  # type: ignore[no-untyped-def]
    """c (rows, 4 vectors) = a (rows, terms) b (terms, 4 vectors)"""
    for _ in range(times):
        multiply(WEIGHTS, start(a), terms, 1, start(b), 4 * LANES, LANES, start(c), 4 * LANES, LANES, rows, 4, terms, 0)


def operations(form: Any) -> dict[str, float]:
    """Of the products of each part."""
    places = form.sequences * form.tokens * form.depth
    square, mixed = 2 * form.width**2 * places, 2 * form.width * form.tokens * places
    mlp = 4 * form.width * form.hidden * places if form.activation == GELU else 0
    attention = {
        "scores and weights": 3 * square + mixed,
        "mixing": square + mixed,
        "mixing, backward": 2 * square + 2 * mixed,
    }
    backward = {"scores, backward": 6 * square + 2 * mixed}
    return attention | backward | dict.fromkeys(("MLP", "MLP, gradients of weights", "MLP, backward"), mlp)


def least(timed: dict[str, tuple[Callable[[int], object], int]], rounds: int) -> dict[str, float]:
    """Seconds of each, which is called with how often to do it: the least of several rounds of all."""
    found = dict.fromkeys(timed, float("inf"))
    for _ in range(rounds):
        for name, (do, times) in timed.items():
            do(1)
            began = time.perf_counter()
            do(times)
            found[name] = min(found[name], (time.perf_counter() - began) / times)
    return found


def profiled(name: str, dropout: float | None, rounds: int) -> tuple[dict[str, float], dict[str, float]]:
    """Seconds of the step, of each part and of the two products for comparison; and the operations of those that are products."""
    torch.set_num_threads(1)
    members, batch, objective = networks.stack(name, MEMBERS, dropout)
    cell = networks.cell_of(name)
    members.engine = engine = Fused(members, cell.architecture, networks.trained(cell, dropout))
    members.step(objective, batch)
    ((form, ((room, work), *_)),) = engine.rooms.items()
    key = np.array(members.dropout.keys)[0] if members.dropout else np.zeros(2, np.uint64)
    w, g, first, second = (members.weights.detach().numpy()[0].copy() for _ in range(4))
    about = w, g, first, second, engine.layers, engine.fixed[form.tokens][3], key, engine.sites, form, room, work

    def part(number: int, times: int) -> None:
        for state in (g, first, second, work.d, work.one, work.two, work.da, work.dh):  # sums that go on and on
            state[:] = 1e-3
        run(number, times, *about)

    rows, terms = IN_CACHE
    a, b, c = (np.ones(count, np.float32) for count in (rows * terms, terms * 4 * LANES, rows * 4 * LANES))
    theirs = product(WIDTH)
    timed: dict[str, tuple[Callable[[int], object], int]] = {
        STEP: (lambda times: members.steps(objective, [batch] * times), 4)
    }
    timed |= {name: (partial(part, number), 50) for number, name in enumerate(PARTS)}
    timed |= {TILE: (lambda times: run_in_cache(times, a, b, c, rows, terms), 500)}
    timed |= {THEIRS: (lambda times: [theirs() for _ in range(times)], 10)}
    counts = operations(form) | {TILE: 2 * rows * terms * 4 * LANES, THEIRS: 2 * WIDTH**3}
    found = least(timed, rounds)
    return found | {STEP: found[STEP] / MEMBERS}, counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "network", nargs="?", default="sorting transformer converged 6", choices=sorted(networks.default())
    )
    parser.add_argument("--dropout", type=float, help="as the run has it, if not given")
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args()
    found, counts = profiled(args.network, args.dropout, args.rounds)
    whole, parts = found[STEP], {name: found[name] for name in PARTS}
    for name, took in parts.items():
        rate = f"{counts[name] / took / 1e9:6.0f} GFLOP/s" if counts.get(name) else ""
        print(f"{name:28} {took * 1e6:7.0f} us {took / whole:6.0%} {rate}".rstrip())
    rest = whole - sum(parts.values())
    print(f"{'the rest':28} {rest * 1e6:7.0f} us {rest / whole:6.0%}")
    products = {name: took for name, took in parts.items() if counts.get(name)}
    took, count = sum(products.values()), sum(counts[name] for name in products)
    print(f"{STEP:28} {whole * 1e6:7.0f} us, products {took / whole:.0%} of it, at {count / took / 1e9:.0f} GFLOP/s")
    for name in (TILE, THEIRS):
        print(f"{name:28} {counts[name] / found[name] / 1e9:7.0f} GFLOP/s")


if __name__ == "__main__":
    main()
