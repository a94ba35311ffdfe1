"""Measure |dL / dW_Q|^2 T / (d^2 sqrt(log T)) of one layer of attention and MLP by the scale beta of scores, for several numbers T of
tokens.

The width d is a fixed share of T, as in the source, or one width. The loss is the mean cross-entropy of random symbols by a random map, as
at the start of a masked language model.
"""

import math

import torch
from torch import Tensor

from rankfall import Context, Evidence, random_stream
from rankfall import evidence_row as row
from studies.claims.draws import linear_map, standard_normal, unit_deviation
from studies.claims.query_gradients.names import ABOVE, BELOW, FIXED, GRADIENT, NAME, SHARE


def query_gradients(
    context: Context,
    *,
    betas: list[float] = [0.1, 0.3, 0.43, 0.65, 0.86, 1.0, 1.29, 1.5, 2.0, 2.15, 2.5, 3.0],
    lengths: list[int] = [256, 512, 1024, 2048],
    ratio: int = 8,
    width: int = 64,
    symbols: int = 64,
    seeds: int = 12,
) -> Evidence:
    """Return the evidence. `ratio` is tokens per dimension, `width` the fixed width."""
    for tokens in lengths:
        for seed in range(seeds):
            gradients = {beta: scaled_gradient(seed, tokens, tokens // ratio, symbols, beta) for beta in betas}
            for beta, value in gradients.items():
                yield row(NAME, GRADIENT, f"{tokens} tokens", beta, seed, value)
                yield row(NAME, SHARE, f"{tokens} tokens", beta, seed, value / gradients[max(betas)])
    for tokens in sorted(lengths)[-2:]:
        for seed in range(seeds):
            for beta in (*BELOW, *ABOVE):
                value = scaled_gradient(seed, tokens, width, symbols, beta)
                yield row(NAME, FIXED, f"{tokens} tokens", beta, seed, value)


def scaled_gradient(seed: int, tokens: int, width: int, symbols: int, beta: float) -> float:
    """Return |dL / dW_Q|^2 T / (d^2 sqrt(log T))."""
    gradient = query_gradient(seed, tokens, width, symbols, beta)
    return float(gradient.square().sum()) * tokens / (width**2 * math.log(tokens) ** 0.5)


def query_gradient(seed: int, tokens: int, width: int, symbols: int, beta: float) -> Tensor:
    """Return the gradient of the query map (D, D)."""
    names = [f"{NAME} {part}" for part in ("query", "key", "value", "inner", "outer", "head")]
    scale = beta * math.log(tokens) ** 0.5
    variances = (scale, scale, 0.2, 0.2, 0.2)
    query, key, value, inner, outer = (
        linear_map(seed, width, width, variance, name) for variance, name in zip(variances, names[:5], strict=True)
    )
    head = linear_map(seed, width, symbols, 1.0, names[5]) * 0.02 * width**0.5  # BERT's deviation of .02
    x = unit_deviation(standard_normal(seed, tokens, width, name=f"{NAME} tokens {tokens}"))  # (T, D)
    labels = torch.from_numpy(random_stream(seed, "claims", NAME, "symbols", tokens).integers(symbols, size=tokens))
    query.requires_grad_(True)
    weights = ((x @ query) @ (x @ key).T * width**-0.5).softmax(-1)  # (T, T)
    y = unit_deviation(x + weights @ (x @ value))
    y = unit_deviation(y + (y @ inner).relu() @ outer)
    loss = torch.nn.functional.cross_entropy(y @ head, labels)
    (gradient,) = torch.autograd.grad(loss, query)
    return gradient
