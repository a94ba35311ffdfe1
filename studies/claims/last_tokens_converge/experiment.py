"""Measure how far the last state of a decoder that reads one token n times is from that for n + 1 times.

Weights are random, and a few random tokens come first. Under a causal mask one pass over the longest text has the last states of all
shorter ones. For `counting_needs_positions` the text is one token n times, alone or after one other token (BOS). In a layer of attention
alone, without positions, the last state is then v + w (v_BOS - v) with 1 / w linear in n, so a line through n = 1 and n = 2 recovers n.
"""

import math
from typing import Any

import torch
from torch import Tensor

from rankfall import Context, Evidence
from rankfall import evidence_row as row
from studies.claims.draws import draw, log10
from studies.claims.last_tokens_converge.names import APART, DISTANCE, EQUAL, READ
from studies.claims.parts import PRE_NORM
from studies.claims.untrained import make

COST = {"seconds": 28}
BUILDS = {
    "mask": ["causal"],
    "mlp": ["gelu", "none"],
    "norm": ["layer", "none"],
    "normaliser": ["softmax", "exp", "l2"],
    "position": ["none", "alibi", "rope", "sinusoidal"],
    "residual": ["add", "none"],
}
CONVERGE, COUNTING = "last_tokens_converge", "counting_needs_positions"
NETWORKS: dict[str, dict[str, Any]] = {
    "softmax, no positions": {"position": "none"},
    "softmax, ALiBi": {"position": "alibi"},
    "softmax, RoPE": {"position": "rope"},
    "softmax, sinusoids": {"position": "sinusoidal"},
    "l2, no positions": {"normaliser": "l2"},
    "exp, no positions": {"normaliser": "exp"},
}
FORMATS = {"bfloat16": torch.bfloat16, "float32": torch.float32}
DIGITS = {"bfloat16": 8, "float32": 24, "float64": 53}
DECODER: dict[str, Any] = PRE_NORM | {"mask": "causal", "mlp": "gelu"}


def last_tokens_converge(
    context: Context,
    *,
    most: int = 1024,
    before: int = 8,
    depth: int = 4,
    width: int = 32,
    heads: int = 4,
    seeds: int = 5,
) -> Evidence:
    fields = DECODER | {"depth": depth, "width": width, "heads": heads}
    fields["init"] = {"name": "normal", "deviation": width**-0.5}
    for seed in range(seeds):
        vocabulary = draw([seed], before + 1, width, name=CONVERGE)  # (1, P + 1, D)
        text = torch.cat([vocabulary[:, :-1], vocabulary[:, -1:].expand(-1, most + 1, -1)], 1).unsqueeze(1)
        for line, parts in NETWORKS.items():
            last = last_states(seed, text, torch.float64, fields | parts)[before:]  # (n, D)
            apart = relative(last[1:] - last[:-1], last[1:])
            for number in powers(most):
                value = log10(float(apart[number - 1]))
                yield row(CONVERGE, DISTANCE, line, number, seed, value, "the states are equal")
            for name, dtype in FORMATS.items():
                last = last_states(seed, text, dtype, fields | parts)[before:]
                equal = (last[1:] == last[:-1]).all(-1).double()
                for number in powers(most // 2):
                    share = float(equal[number - 1 : 2 * number - 1].mean())  # of n .. 2 n - 1
                    yield row(CONVERGE, EQUAL, f"{line}, {name}", number, seed, share)
        yield from counting(seed, vocabulary[:, -2:], most, fields)


def counting(seed: int, vocabulary: Tensor, most: int, fields: dict[str, Any]) -> Evidence:
    """Return the evidence on counting. `vocabulary` (1, 2, D) has BOS and the counted token."""
    alone = vocabulary[:, 1:].expand(-1, most, -1).unsqueeze(1)  # (1, 1, n, D)
    behind = torch.cat([vocabulary[:, :1].unsqueeze(1), alone], 2)
    for text, start, beginning in ((alone, 0, "no BOS"), (behind, 1, "BOS")):
        for normaliser in ("softmax", "l2", "exp"):
            last = last_states(seed, text, torch.float64, fields | {"normaliser": normaliser})[start:]
            value = float(relative(last - last[:1], last[:1]).max())
            yield row(
                COUNTING, APART, f"{normaliser}, {beginning}", fields["depth"], seed, log10(value), "they are equal"
            )
    bare = {"depth": 1, "width": fields["width"], "heads": 1, "init": fields["init"], "mask": "causal"}
    for text, start, beginning in ((alone, 0, "no BOS"), (behind, 1, "BOS")):
        for name, digits in DIGITS.items():
            last = last_states(seed, text, getattr(torch, name), bare).double()
            yield row(COUNTING, READ, f"softmax, {beginning}", digits, seed, read_off(last[start:], last[0]))


def read_off(states: Tensor, first: Tensor) -> int:
    """Return the largest n up to which every n is recovered from states (n, D) of the form v + w (first - v) with 1 / w = 1 + c n."""
    # The position between BOS and the state at n = 1 is proportional to 1 - w_n = c n / (1 + c n), so n divided by it is linear in n.
    projection = (states - first) @ (states[0] - first)  # (n,)
    ratios = torch.tensor([1.0, 2.0], dtype=projection.dtype) / projection[:2]
    slope = ratios[1] - ratios[0]
    read = (ratios[0] - slope) * projection / (1 - slope * projection)
    right = read.round() == torch.arange(1, len(projection) + 1, dtype=projection.dtype)
    return len(projection) if bool(right.all()) else int((~right).nonzero()[0])


def last_states(seed: int, text: Tensor, dtype: torch.dtype, fields: dict[str, Any]) -> Tensor:
    """Return the states (T, D) after the last layer. Each place is the last token of the text so far."""
    network = make([seed], text.shape[2], dtype, **fields)
    return network.run(network.first_state(text.to(dtype)))[0, 0]


def relative(difference: Tensor, states: Tensor) -> Tensor:
    """Return the length of each token's difference (n, D) over that of its state."""
    return difference.norm(dim=-1) / states.norm(dim=-1)


def powers(most: int) -> list[int]:
    return [2**k for k in range(int(math.log2(most)) + 1)]
