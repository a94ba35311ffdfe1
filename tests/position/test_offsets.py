"""Check terms by offset: each number is the entry of the matrix that the network adds or multiplies by."""

from itertools import product

import pytest
import torch
from helpers import by_member, cells, data_of, network_of

from rankfall.measure.context import Context
from rankfall.position.offsets.measure import offsets

LENGTH = 5


@pytest.mark.parametrize("sentinels", ["none", "bos"])
def test_every_entry_of_both_matrices(sentinels: str) -> None:
    """B is what is added to scores of zero, C what weights are multiplied by, entry by entry."""
    parts = {"position": "toeplitz", "normaliser": "urpe", "sentinels": sentinels}
    network = network_of(2, LENGTH, 6, noise=1.0, **parts)
    tokens = LENGTH + (sentinels == "bos")
    data = data_of(torch.zeros(2, 3, LENGTH, dtype=torch.int64))
    rows = by_member(offsets, Context(network, data, cells(architecture=parts, grid={"seed": "0..1"})))
    values = {(row["member"], row["which"], row["of_head"], row["offset"]): row["value"] for row in rows}
    assert len(values) == 2 * 2 * 2 * (2 * tokens - 1)
    logits = torch.zeros(2, 1, 2, tokens, tokens, dtype=torch.float64)
    normaliser = network.blocks[0].attention.normaliser
    # softmax of equal scores is 1 / T
    matrices = {"B": network.position.bias(logits), "C": normaliser(logits) * tokens}
    for which, matrix in matrices.items():
        for member, head, i, j in product(range(2), range(2), range(tokens), range(tokens)):
            entry = float(matrix[member, 0, head, i, j])
            assert values[member, which, head + 1, i - j] == pytest.approx(entry, abs=1e-12)
