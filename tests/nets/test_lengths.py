"""A network at other lengths than it was made for, and begun from vectors instead of inputs."""

from functools import partial
from typing import Any

import pytest
import torch
from helpers import network_of

from rankfall.errors import RankfallError

LONG = torch.tensor([[[0, 3, 1, 4, 1, 2, 0, 3, 2]]]).expand(2, 1, 9)


network = partial(network_of, symbols=5, noise=0.3)


@pytest.mark.parametrize("sentinels", ["none", "bos"])
@pytest.mark.parametrize("attention", ["multihead", "gau"])
@pytest.mark.parametrize("position", ["rope", "toeplitz"])
def test_a_causal_network_says_the_same_of_a_beginning_whatever_follows(
    position: str, attention: str, sentinels: str
) -> None:
    made = network(position=position, attention=attention, sentinels=sentinels, mask="causal")
    longer = made(LONG)
    assert longer.shape[2] == 9
    assert (longer[:, :, :5] - made(LONG[..., :5])).abs().max() < 1e-12
    assert (longer[:, :, :3] - made(LONG[..., :3])).abs().max() < 1e-12


def test_linear_attention_runs_at_any_length() -> None:
    made = network(position="none", attention="linear", mask="causal")
    assert (made(LONG)[:, :, :5] - made(LONG[..., :5])).abs().max() < 1e-12


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
