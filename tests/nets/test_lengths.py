"""A network at other lengths than it was made for, and begun from vectors instead of inputs."""

from functools import partial
from typing import Any

import pytest
import torch
from helpers import network_of

from rankfall.errors import RankfallError

LONG = torch.tensor([[[0, 3, 1, 4, 1, 2, 0, 3, 2]]]).expand(2, 1, 9)


network = partial(network_of, symbols=5, noise=0.3)


@pytest.mark.parametrize(
    "parts",
    [
        *(
            {"position": position, "attention": attention}
            for position in ("rope", "toeplitz")
            for attention in ("multihead", "gau")
        ),
        {"position": "rope", "sentinels": "bos"},
        {"position": "none", "attention": "linear"},
    ],
    ids=str,
)
def test_a_causal_network_says_the_same_of_a_beginning_whatever_follows(parts: dict[str, Any]) -> None:
    made = network(mask="causal", **parts)
    longer = made(LONG)
    assert longer.shape[2] == 9
    for length in (3, 5):
        assert (longer[:, :, :length] - made(LONG[..., :length])).abs().max() < 1e-12


def test_learned_positions_end_where_training_did() -> None:
    made = network(position="learned")
    assert made(LONG[..., :3]).shape[2] == 3
    with pytest.raises(RankfallError, match=r"learned positions: 9 tokens, but only 5 positions were trained"):
        made(LONG)


@pytest.mark.parametrize("architecture", [{"sentinels": "bos"}, {"norm_placement": "pre", "mlp": "gelu"}])
def test_from_vectors(architecture: dict[str, Any]) -> None:
    """lift, run and readout are the forward pass; states are what run goes through; lift is what place makes of the embedding."""
    made, inputs = network(**architecture), LONG[..., :5]
    vectors = made.lift(inputs)
    assert torch.equal(made.readout(made.run(vectors)), made(inputs))
    states = made.states(inputs)
    assert torch.equal(states[0], vectors) and torch.equal(states[-1], made.run(vectors))
    assert len(states) == 3
    assert torch.equal(made.first_state(made.embedding(inputs)), vectors)
