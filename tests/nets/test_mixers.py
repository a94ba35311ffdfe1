"""Check gates, differences of two softmaxes and recurrences against loops over tokens."""

import math
from typing import Any

import pytest
import torch
from one_layer import network, states
from torch import Tensor

EXACT = 1e-11
RECURRENT = ("retention", "gated_linear", "delta", "selective")


def mapped(part: Any, x: Tensor, k: int) -> Tensor:
    """x (T, D) of member k through a map."""
    found = x @ part.weight[k]
    return found if part.bias is None else found + part.bias[k]


def heads(layer: Any, part: Any, x: Tensor, k: int) -> Tensor:
    """(H, T, d)"""
    return mapped(part, x, k).view(len(x), layer.heads, -1).transpose(0, 1)


def softmax(scores: list[float]) -> list[float]:
    powers = [math.exp(score) for score in scores]
    return [power / sum(powers) for power in powers]


def emitted(layer: Any, found: list[list[Tensor]], k: int) -> Tensor:
    """What heads give at each token (H, T, d), put together."""
    return mapped(layer.output, torch.stack([torch.stack(rows) for rows in found]).transpose(0, 1).flatten(1), k)


@pytest.mark.parametrize("gate", ["elementwise", "head"])
def test_the_gate_multiplies_what_heads_read(gate: str) -> None:
    made = network(attention={"name": "gated", "gate": gate}, mask="causal", heads=3)
    layer, x = made.blocks[0].attention, states(5)
    output = layer(x)
    for k, b in ((0, 0), (1, 2)):
        q, key, v = (heads(layer, part, x[k, b], k) for part in (layer.query, layer.key, layer.value))
        gates = 1 / (1 + (-(x[k, b] @ layer.gate.weight[k])).exp()).view(5, 3, -1)  # (T, H, d) or (T, H, 1)
        by_head = []
        for h in range(3):
            rows = []
            for i in range(5):
                weights = softmax([float(q[h, i] @ key[h, j]) / math.sqrt(2) for j in range(i + 1)])
                rows.append(gates[i, h] * sum(weights[j] * v[h, j] for j in range(i + 1)))
            by_head.append(rows)
        torch.testing.assert_close(output[k, b], emitted(layer, by_head, k), rtol=EXACT, atol=EXACT)


@pytest.mark.parametrize("name", ["exclusive", "head_normed", "path"])
def test_softmax_with_other_keys_or_outputs_is_its_formula(name: str) -> None:
    made = network(attention=name, mask="causal", heads=3)
    layer, x = made.blocks[0].attention, states(5)
    got = layer(x)
    for k, b in ((0, 0), (1, 2)):
        q, key, v = (heads(layer, part, x[k, b], k) for part in (layer.query, layer.key, layer.value))
        found = []
        for h in range(3):
            rows = []
            for i in range(5):
                scores = [float(q[h, i] @ changed(layer, x[k, b], k, h, i, j, name) @ key[h, j]) for j in range(i + 1)]
                row = sum(p * v[h, j] for j, p in enumerate(softmax([score / math.sqrt(2) for score in scores])))
                if name == "exclusive":
                    row = row - (row @ v[h, i]) / (v[h, i] @ v[h, i]) * v[h, i]
                if name == "head_normed":
                    row = row / row.square().mean().sqrt() * layer.gain[k, 0, h, 0]
                rows.append(row)
            found.append(rows)
        torch.testing.assert_close(got[k, b], emitted(layer, found, k), rtol=1e-9, atol=1e-9)


def changed(layer: Any, x: Tensor, k: int, h: int, i: int, j: int, name: str) -> Tensor:
    """The product H_i ... H_(j+1) of PaTH (d, d); for others the identity."""
    found = torch.eye(2, dtype=x.dtype)
    for t in range(j + 1, i + 1 if name == "path" else j + 1):
        w = heads(layer, layer.direction, x, k)[h, t]
        rate = 2 / (1 + math.exp(-float(mapped(layer.rate, x, k)[t, h])))
        found = found - rate * torch.outer(w, w @ found) / (w @ w)
    return found


@pytest.mark.parametrize(("norm", "mask"), [(True, "causal"), (False, "none")])
def test_differential_attention_is_the_difference_of_two(norm: bool, mask: str) -> None:
    made = network(attention={"name": "differential", "norm": norm}, heads=3, depth=3, mask=mask)
    x = states(4)
    for number, block in enumerate(made.blocks):
        layer, output = block.attention, block.attention(x)
        start = 0.8 - 0.6 * math.exp(-0.3 * number)  # .2 in the first layer
        for k, b in ((0, 1), (1, 0)):
            vectors = layer.shares[k].tolist()
            share = [math.exp(sum(p * r for p, r in zip(*pair))) for pair in (vectors[:2], vectors[2:])]
            part = share[0] - share[1] + start
            maps = (layer.query, layer.key, layer.other_query, layer.other_key, layer.value)
            q, key, q2, key2, v = (heads(layer, each, x[k, b], k) for each in maps)
            by_head = []
            for h in range(3):
                rows = []
                for i in range(4):
                    seen = range(i + 1 if mask == "causal" else 4)
                    first, second = (
                        softmax([float(left[h, i] @ right[h, j]) / math.sqrt(2) for j in seen])
                        for left, right in ((q, key), (q2, key2))
                    )
                    row = sum((a - part * c) * v[h, j] for j, a, c in zip(seen, first, second))
                    if norm:
                        row = row / row.square().mean().sqrt() * layer.gain[k].flatten() * (1 - start)
                    rows.append(row)
                by_head.append(rows)
            torch.testing.assert_close(output[k, b], emitted(layer, by_head, k), rtol=1e-9, atol=1e-9)
            sums = layer.weights(x)[k, b].sum(-1)
            torch.testing.assert_close(sums, torch.full_like(sums, 1 - part))


def recurrence(name: str, layer: Any, x: Tensor, k: int) -> list[list[Tensor]]:
    """The state of each head (values x keys) token by token, as the paper writes it."""
    q, key, v = (heads(layer, part, x, k) for part in (layer.query, layer.key, layer.value))
    found = []
    for h in range(layer.heads):
        state, rows = torch.zeros(v.shape[-1], q.shape[-1], dtype=x.dtype), []
        for t in range(len(x)):
            read, write, value = q[h, t] / math.sqrt(q.shape[-1]), key[h, t], v[h, t]
            if name == "retention":
                state = (1 - 2.0 ** (-5 - h)) * state + torch.outer(value, write)
            elif name == "gated_linear":
                kept = torch.sigmoid(mapped(layer.gate, x, k)[t]).view(layer.heads, -1)[h] ** (1 / 16)
                state = state * kept + torch.outer(value, write)
            elif name == "delta":
                read, write = q[h, t] / q[h, t].norm(), write / write.norm()
                rate = torch.sigmoid(mapped(layer.rate, x, k)[t, h])
                state = state - rate * torch.outer(state @ write, write) + rate * torch.outer(value, write)
            else:
                read, step = q[h, t], torch.log1p(mapped(layer.step, x, k)[t, h].exp())
                speed = (h + 1) * layer.speed[k].flatten()[h].exp()
                state = torch.exp(-step * speed) * state + step * torch.outer(value, write)
            through = layer.through[k].flatten()[h] * value if name == "selective" else 0.0
            rows.append(state @ read + through)
        found.append(rows)
    return found


@pytest.mark.parametrize("length", [1, 7, 19])
@pytest.mark.parametrize("name", RECURRENT)
def test_recurrences_are_those_of_their_papers(name: str, length: int) -> None:
    made = network(length=length, attention=name, mask="causal", heads=3)
    layer, x = made.blocks[0].attention, states(length)
    got = layer(x)
    for k, b in ((0, 0), (1, 2)):
        want = emitted(layer, recurrence(name, layer, x[k, b], k), k)
        torch.testing.assert_close(got[k, b], want, rtol=EXACT, atol=EXACT)
