"""Build networks by hand whose dependence is known.

A token's vector has coordinates for its place, and channels. Only the channel SIGN depends on the input, where it is +1 or -1. What the
last token's final state depends on follows from the weights, and is also counted over all inputs. All networks are in a rotated basis,
which changes no dependence and no length: a seed is a rotation.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from rankfall import Network, random_stream
from studies.claims.untrained import make

TOKENS = 5
SIGN, A, B, ONE = TOKENS, TOKENS + 1, TOKENS + 2, TOKENS + 3  # channels after the places; ONE is always one
WIDTH = TOKENS + 4
HARD = 60.0  # of a score: other tokens share e^-60 of the weight
LAST = TOKENS - 1


@dataclass(frozen=True)
class Known:
    """A network with all inputs and its known dependence. `needed` are the tokens on which the last token's state depends."""

    name: str
    network: Network
    inputs: Tensor  # (2^T, T, D): all inputs
    direction: Tensor  # (D,): of the channel that depends on the input
    needed: frozenset[int]


@dataclass
class HandLayer:
    """Weights before the rotation, by head: scores x^T S y, values x V. `up` and `down` are of an MLP with rectified units."""

    scores: list[np.ndarray]
    values: list[np.ndarray]
    up: np.ndarray | None = None
    bias: np.ndarray | None = None
    down: np.ndarray | None = None


@dataclass
class HandPlan:
    """A network built by hand, and the tokens on which its answer depends."""

    name: str
    layers: list[HandLayer]
    needed: set[int]
    skips: bool = True


def build_all(seed: int) -> list[Known]:
    """Return all networks, rotated by a seed."""
    plans = (unread, cancelling_heads, copied_twice, read_before, write_and_read, moved_by_keys, saturated_units)
    basis = np.linalg.qr(random_stream(seed, "claims", "attribution_truth", "basis").normal(size=(WIDTH, WIDTH)))[0]
    return [build(plan(), basis) for plan in plans]


def build(plan: HandPlan, basis: np.ndarray) -> Known:
    """Return the network of a plan with its inputs, in a rotated basis."""
    heads = len(plan.layers[0].scores)
    has_mlp = plan.layers[0].up is not None
    network = make(
        [0],
        TOKENS,
        depth=len(plan.layers),
        heads=heads,
        head_width=WIDTH,
        width=WIDTH,
        residual="add" if plan.skips else "none",
        mlp="relu" if has_mlp else "none",
        mlp_residual="none",
        mlp_width=4,
    )
    network.embedding = torch.nn.Identity()
    for block, layer in zip(network.blocks, plan.layers, strict=True):
        attention = block.attention
        for head in range(heads):
            part = slice(head * WIDTH, (head + 1) * WIDTH)
            attention.query.weight[0, :, part] = tensor(basis.T @ layer.scores[head] * WIDTH**0.5)
            attention.key.weight[0, :, part] = tensor(basis.T)
            attention.value.weight[0, :, part] = tensor(basis.T @ layer.values[head])
            attention.output.weight[0, part] = tensor(basis)
        if layer.up is not None:
            assert layer.bias is not None and layer.down is not None
            block.mlp.inner.weight[0], block.mlp.inner.bias[0] = tensor(basis.T @ layer.up), tensor(layer.bias[None])
            block.mlp.outer.weight[0] = tensor(layer.down @ basis)
    signs = (torch.arange(2**TOKENS)[:, None] >> torch.arange(TOKENS)) & 1  # (2^T, T)
    x = np.zeros((2**TOKENS, TOKENS, WIDTH))
    x[:, np.arange(TOKENS), np.arange(TOKENS)] = 1
    x[..., SIGN] = 2 * signs.numpy() - 1
    x[..., ONE] = 1
    return Known(plan.name, network, tensor(x @ basis), tensor(basis[SIGN]), frozenset(plan.needed))


def tensor(value: np.ndarray) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(value))


def move(*pairs: tuple[int, int], factor: float = 1.0) -> np.ndarray:
    """Return values that carry the first channel of each pair into the second."""
    values = np.zeros((WIDTH, WIDTH))
    for first, second in pairs:
        values[first, second] = factor
    return values


def look(*weights: tuple[int, float]) -> np.ndarray:
    """Return scores by which every token gives these tokens these weights, which sum to one."""
    scores = np.zeros((WIDTH, WIDTH))
    scores[ONE, :TOKENS] = -HARD
    for place, weight in weights:
        scores[ONE, place] = np.log(weight)
    return scores


def look_back(steps: int) -> np.ndarray:
    """Return scores by which every token attends `steps` tokens back, and the first tokens to the first."""
    scores = np.zeros((WIDTH, WIDTH))
    for place in range(TOKENS):
        scores[place, max(place - steps, 0)] = HARD
    return scores


PLACES = [(place, place) for place in range(TOKENS)]


def unread() -> HandPlan:
    """Put nine tenths of attention on token 0 and a tenth on token 1. A second head removes what the first has read of token 0."""
    heads = [look((0, 0.9), (1, 0.1)), look((0, 1.0))]
    return HandPlan("a sink", [HandLayer(heads, [move((SIGN, A)), move((SIGN, A), factor=-0.9)])], {1, LAST})


def cancelling_heads() -> HandPlan:
    """Let two heads attend to token 0 and add it with opposite signs. What each head reads of another token stays."""
    heads = [look((0, 0.8), (1, 0.2)), look((0, 0.8), (2, 0.2))]
    return HandPlan(
        "heads that cancel", [HandLayer(heads, [move((SIGN, A)), move((SIGN, A), factor=-1.0)])], {1, 2, LAST}
    )


def copied_twice() -> HandPlan:
    """Copy the previous token into each token, and then the token before that, without skips."""
    everything = move(*PLACES, (SIGN, SIGN), (ONE, ONE))
    return HandPlan(
        "a copy of a copy",
        [HandLayer([look_back(1)], [everything]), HandLayer([look_back(2)], [everything])],
        {1},
        skips=False,
    )


def read_before() -> HandPlan:
    """Read the previous token's sign in both layers. The second does not read what the first has written."""
    layers = [HandLayer([look_back(1)], [move((SIGN, A))]), HandLayer([look_back(1)], [move((SIGN, B))])]
    return HandPlan("what is written is not read", layers, {LAST - 1, LAST})


def write_and_read() -> HandPlan:
    """Read in the second layer only what the first has written."""
    layers = [HandLayer([look_back(1)], [move((SIGN, A))]), HandLayer([look_back(1)], [move((A, B))])]
    return HandPlan("what is written is read", layers, {LAST - 2, LAST - 1, LAST})


def moved_by_keys() -> HandPlan:
    """Move attention by the sign of token 0, from token 1 to token 0, whose value is zero: values read the place of token 1 alone."""
    scores = look((0, 1.0), (1, 1.0))
    scores[ONE, SIGN] = 2.0
    scores[ONE, 2:TOKENS] -= 2 * HARD
    values = np.zeros((WIDTH, WIDTH))
    values[1, A] = 1.0
    return HandPlan("a key that moves attention", [HandLayer([scores], [values])], {0, 1, LAST})


def saturated_units() -> HandPlan:
    """Write whether token 0 or token 1 has the sign +1. Both units of the MLP are flat around every input, and only their difference steps
    between inputs."""
    up = np.zeros((WIDTH, 4))
    up[A, :2] = 2.0
    bias = np.array([1.5, 0.5, 0.0, 0.0])
    down = np.zeros((4, WIDTH))
    down[0, B], down[1, B] = 1.0, -1.0
    layer = HandLayer([look((0, 0.5), (1, 0.5))], [move((SIGN, A))], up, bias, down)
    return HandPlan("a saturated answer", [layer], {0, 1}, skips=False)
