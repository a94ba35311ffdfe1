"""Measure query gradients and stable ranks of one layer at birth on a grid of tokens, widths and score scales, by chunks of rows."""

import math
from itertools import product

import torch
from torch import Tensor
from torch.nn import functional as F

from studies.common import Rows, Unit, generator

SYMBOLS = 64
CHUNK = 2**22  # attention weights that are held at once, for memory
BETAS = (0.43, 1.0, 2.0, 3.0)  # of scores; the transition is at sqrt(2)


def units(size: str) -> list[Unit]:
    """Return one unit for each point and replication, small ones first."""
    lengths, widths, count = {
        "tiny": ((64, 128), (16, 32), 2),
        "tenth": ([2**k for k in range(6, 12)], [2**k for k in range(4, 9)], 4),
        "full": ([2**k for k in range(6, 15)], [2**k for k in range(4, 10)], 6),
    }[size]
    points = sorted(product(lengths, widths), key=lambda point: point[0] ** 2 * point[1])
    return [{"tokens": t, "width": d, "replication": k} for t, d in points for k in range(count)]


def measure(unit: Unit, device: str) -> Rows:
    """Return the numbers of one point and replication for each beta."""
    tokens, width = unit["tokens"], unit["width"]
    rows = []
    for number, beta in enumerate(BETAS):
        seed = ((unit["replication"] * 50 + tokens.bit_length()) * 50 + width.bit_length()) * 10 + number
        gradient, ranks = layer(tokens, width, beta, seed, device)
        scaled = gradient * tokens / (width**2 * math.log(tokens) ** 0.5)
        rows.append({"beta": beta, "gradient": scaled, "stable_rank": ranks[0], "stable_rank_cured": ranks[1]})
    return rows


def layer(tokens: int, width: int, beta: float, seed: int, device: str) -> tuple[float, tuple[float, float]]:
    """Return |dL/dW_Q|^2, and the stable ranks of attention's output with softmax weights and with 1/T taken off them."""
    rng = generator(seed)
    variance = beta * math.log(tokens) ** 0.5

    def matrix(rows: int, columns: int, variance: float) -> Tensor:
        return (torch.randn(rows, columns, generator=rng) * (variance / rows) ** 0.5).to(device)

    query, key = matrix(width, width, variance).requires_grad_(True), matrix(width, width, variance)
    value, inner, outer = (matrix(width, width, 0.2) for _ in range(3))
    head = matrix(width, SYMBOLS, 1.0) * 0.02 * width**0.5
    x = unit_rows(matrix(tokens, width, tokens))  # (T, D)
    labels = torch.randint(SYMBOLS, (tokens,), generator=rng).to(device)
    keys, values, mean = x @ key, x @ value, (x @ value).mean(0)
    mixed = []
    for chunk in torch.arange(tokens, device=device).split(max(CHUNK // tokens, 1)):  # a row's loss needs no other row
        weights = ((x[chunk] @ query) @ keys.T * width**-0.5).softmax(-1)  # (rows, T)
        branch = weights @ values
        mixed.append(branch.detach())
        y = unit_rows(x[chunk] + branch)
        y = unit_rows(y + (y @ inner).relu() @ outer)
        (F.cross_entropy(y @ head, labels[chunk], reduction="sum") / tokens).backward()
    assert query.grad is not None
    output = torch.cat(mixed)
    return float(query.grad.double().square().sum()), (stable_rank(output), stable_rank(output - mean))


def unit_rows(x: Tensor) -> Tensor:
    """Apply a layer norm without gain and bias."""
    return F.layer_norm(x, x.shape[-1:])


def stable_rank(x: Tensor) -> float:
    """Return sum s^2 / max s^2 of (T, D) over min(T, D)."""
    x = x.double()
    squares = torch.linalg.eigvalsh(x.T @ x if len(x) > x.shape[1] else x @ x.T)  # s^2
    return float(squares.sum() / squares.max()) / min(x.shape)
