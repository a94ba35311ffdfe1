"""An independent forward pass in 400-digit arithmetic, entry by entry in plain Python: slow, and right at any scale."""

import math
from typing import Any

import mpmath as mp
import torch

DIGITS = 400


def matrix(x: torch.Tensor) -> list[list[mp.mpf]]:
    return [[mp.mpf(v) for v in row] for row in x.tolist()]


def product(a: list[list[Any]], b: list[list[Any]]) -> list[list[Any]]:
    return [[mp.fdot(row, column) for column in zip(*b)] for row in a]


def affine(linear: Any, x: list[list[Any]], columns: slice = slice(None)) -> list[list[Any]]:
    y = product(x, matrix(linear.weight[0][:, columns]))
    bias = [mp.mpf(v) for v in linear.bias[0, 0, columns].tolist()]
    return [[v + b for v, b in zip(row, bias)] for row in y]


def normalised(name: str, row: list[Any], factors: list[Any]) -> list[Any]:
    """Weights of one row of scores; None is a masked pair."""
    n, zero = len(row), mp.mpf(0)
    e = [zero if b is None else mp.exp(b) for b in row]
    if name == "softmax":
        return [v / mp.fsum(e) for v in e]
    if name == "urpe":
        return [c * v / mp.fsum(e) for v, c in zip(e, factors)]
    if name == "exp":
        return e
    if name == "l2":
        return [v / mp.sqrt(mp.fsum(w * w for w in e)) for v in e]
    if name == "swish_l2":
        s = [zero if b is None else b / (1 + mp.exp(-b)) for b in row]
        return [v / mp.sqrt(mp.fsum(w * w for w in s)) for v in s]
    if name == "relu":
        return [zero if b is None or b < 0 else b / n for b in row]
    if name == "relu2":
        return [zero if b is None or b < 0 else b * b / n for b in row]
    if name == "sigmoid":
        shift = mp.mpf(-math.log(n))  # the float that the network adds
        return [zero if b is None else 1 / (1 + mp.exp(-b - shift)) for b in row]
    seen = sum(b is not None for b in row)
    if name in ("cosine", "key_normalised"):
        return [v / mp.fsum(e) for v in e]
    if name == "log_n":
        unit = mp.mpf(math.log(seen) / math.log(512))  # the float that the network multiplies with
        powers = [zero if b is None else mp.exp(b * unit) for b in row]
        return [v / mp.fsum(powers) for v in powers]
    if name == "relu2_sum":
        squares = [zero if b is None or b < 0 else b * b for b in row]
        return [v / mp.fsum(squares) if any(squares) else mp.mpf(b is not None) / seen for b, v in zip(row, squares)]
    if name == "zero_sum":
        return [zero if b is None else v / mp.fsum(e) - mp.mpf(1) / seen for b, v in zip(row, e)]
    return [v / (1 + mp.fsum(e)) for v in e]


def prepared(layer: Any, name: str, q: list[list[Any]], k: list[list[Any]], count: int) -> Any:
    """Queries and keys of lengths that the normaliser gives them; cosines times log n here already."""
    root = mp.sqrt(len(q[0]))
    unit = lambda x: [v / mp.sqrt(mp.fsum(w * w for w in x)) for v in x]  # noqa: E731
    if name == "key_normalised":
        return [[root * v for v in x] for x in q], [unit(x) for x in k]
    if name == "cosine":
        by = root * mp.mpf(layer.normaliser.scale) * mp.log(count)
        return [[by * v for v in unit(x)] for x in q], [unit(x) for x in k]
    return q, k


def attention(layer: Any, name: str, x: list[list[Any]]) -> list[list[Any]]:
    count, width = len(x), layer.head_width
    bias = layer.position.bias(torch.zeros(1, 1, layer.heads, count, count, dtype=torch.float64))[0, 0].tolist()
    allowed = layer.mask(count, torch.device("cpu"))
    shrink = mp.mpf(width**-0.5)  # the float that the network multiplies with
    context: list[list[Any]] = [[] for _ in x]
    for h in range(layer.heads):
        part = slice(h * width, (h + 1) * width)
        q, k, v = (affine(m, x, part) for m in (layer.query, layer.key, layer.value))
        q, k = prepared(layer, name, q, k, count)
        factors = matrix(layer.normaliser.factors(count)[0, 0, h]) if name == "urpe" else x
        for i in range(count):
            row = [
                None
                if allowed is not None and not allowed[i, j]
                else mp.fdot(q[i], k[j]) * shrink + mp.mpf(bias[h][i][j])
                for j in range(count)
            ]
            context[i] += [mp.fdot(normalised(name, row, factors[i]), column) for column in zip(*v)]
    return affine(layer.output, context)


def norm(layer: Any, x: list[list[Any]]) -> list[list[Any]]:
    """Layer, rms and column norms; a function is no norm."""
    kind = type(layer).__name__
    if kind not in ("Layer", "Rms", "ColumnNorm"):
        return x
    gain = [mp.mpf(v) for v in layer.gain.flatten().tolist()]
    bias = [mp.mpf(v) for v in layer.bias.flatten().tolist()] if kind != "Rms" else [mp.mpf(0)] * len(gain)
    lines = [list(column) for column in zip(*x)] if kind == "ColumnNorm" else x
    done = []
    for line in lines:
        mean = mp.mpf(0) if kind == "Rms" else mp.fsum(line) / len(line)
        size = mp.sqrt(mp.fsum((v - mean) ** 2 for v in line) / len(line) + mp.mpf(layer.eps))
        done.append([(v - mean) / size for v in line])
    rows = [list(row) for row in zip(*done)] if kind == "ColumnNorm" else done
    return [[v * g + b for v, g, b in zip(row, gain, bias)] for row in rows]


def mlp(layer: Any, x: list[list[Any]]) -> list[list[Any]]:
    relu = type(layer).__name__ == "Relu"
    inner = affine(layer.inner, x)
    active = [[max(v, mp.mpf(0)) if relu else v * (1 + mp.erf(v / mp.sqrt(2))) / 2 for v in row] for row in inner]
    return affine(layer.outer, active)


def join(residual: Any, x: list[list[Any]], y: list[list[Any]]) -> list[list[Any]]:
    keep, take = (float(residual(a, b)) for a, b in ((1.0, 0.0), (0.0, 1.0)))
    return [[mp.mpf(keep) * a + mp.mpf(take) * b for a, b in zip(*rows)] for rows in zip(x, y)]


def block(layer: Any, name: str, x: list[list[Any]]) -> list[list[Any]]:
    pre = layer.placement == "pre"
    x = join(layer.residual, x, attention(layer.attention, name, norm(layer.norm1, x) if pre else x))
    x = x if pre else norm(layer.norm1, x)
    if layer.mlp is None:
        return x
    x = join(layer.mlp_residual, x, mlp(layer.mlp, norm(layer.norm2, x) if pre else x))
    return x if pre else norm(layer.norm2, x)


def rest(x: list[list[Any]]) -> list[list[Any]]:
    """X less its mean row."""
    means = [mp.fsum(column) / len(x) for column in zip(*x)]
    return [[v - m for v, m in zip(row, means)] for row in x]


def distance(unit: torch.Tensor, log: float, wanted: list[list[Any]]) -> float:
    """Largest entry of the difference between unit * e^log and `wanted`, relative to the largest entry of `wanted`."""
    size = max(abs(v) for row in wanted for v in row)
    scale = mp.exp(mp.mpf(log))
    return float(
        max(abs(mp.mpf(a) * scale - b) for mine, row in zip(unit.tolist(), wanted) for a, b in zip(mine, row)) / size
    )


def size_log10(wanted: list[list[Any]]) -> float:
    return float(mp.log10(max(abs(v) for row in wanted for v in row)))
