"""Guards terms by offset: each number is the entry of the matrix that the network really adds or multiplies by."""

from typing import Any

import pytest
import torch
from helpers import by_member, cells, data_of

from rankfall.measure.context import Context
from rankfall.nets.network import Shape, build
from rankfall.position.offsets.measure import offsets

LENGTH = 5


def made(**architecture: Any) -> tuple[Any, list[Any]]:
    """Two members with learned terms drawn at random, and their cells."""
    two = cells(architecture=architecture, grid={"seed": "0..1"})
    network = build(two[0].architecture, Shape("tokens", "classes", LENGTH, 6, 6), 2, torch.float64)
    network.initialise([0, 1])
    for name, value in network.named_parameters():
        if "position" in name or "normaliser" in name:
            value.data.normal_(generator=torch.Generator().manual_seed(len(name)))
    return network.requires_grad_(False), two


def measured(network: Any, two: list[Any]) -> list[dict[str, Any]]:
    return by_member(offsets, Context(network, data_of(torch.zeros(2, 3, LENGTH, dtype=torch.int64)), two))


@pytest.mark.parametrize("sentinels", ["none", "bos"])
def test_every_entry_of_both_matrices(sentinels: str) -> None:
    """B is what is added to scores of zero, C what weights are multiplied by, entry by entry."""
    network, two = made(position="toeplitz", normaliser="urpe", sentinels=sentinels)
    tokens = LENGTH + (sentinels == "bos")
    found = {(r["member"], r["which"], r["of_head"], r["offset"]): r["value"] for r in measured(network, two)}
    assert len(found) == 2 * 2 * 2 * (2 * tokens - 1)
    logits = torch.zeros(2, 1, 2, tokens, tokens, dtype=torch.float64)
    normaliser = network.blocks[0].attention.normaliser
    matrices = {
        "B": network.position.bias(logits),
        "C": normaliser(logits) * tokens,
    }  # softmax of equal scores is 1 / T
    for member in range(2):
        for which, matrix in matrices.items():
            for head in range(2):
                for i in range(tokens):
                    for j in range(tokens):
                        entry = float(matrix[member, 0, head, i, j])
                        assert found[member, which, head + 1, i - j] == pytest.approx(entry, abs=1e-12)
