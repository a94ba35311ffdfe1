"""Guards the embedding with a map: it is the plain one followed by a linear map, and a frozen symbol's vector does not train."""

import torch

from rankfall.nets.embeddings.mapped_token import MappedToken
from rankfall.nets.primitives import Sizes

SIZES = Sizes(members=2, length=3, depth=1, width=4, heads=2, head_width=2, mlp_width=16, size_in=5, size_out=5)


def test_looks_up_and_maps_and_leaves_the_frozen_vector_alone() -> None:
    embedding = MappedToken(SIZES, frozen=0)
    generator = torch.Generator().manual_seed(0)
    for value in embedding.parameters():
        value.data = torch.randn(value.shape, generator=generator)
    index = torch.tensor([[[0, 1, 4]], [[2, 0, 0]]])  # (K, B, T)
    found = embedding(index)
    for member in range(2):
        rows = embedding.table.weight[member][index[member, 0]]
        expected = rows @ embedding.map.weight[member] + embedding.map.bias[member]
        assert torch.allclose(found[member, 0], expected, atol=1e-6)
    grad = torch.autograd.grad(found.square().sum(), embedding.table.weight)[0]
    assert (grad[:, 0] == 0).all() and (grad[0, 1] != 0).all() and (grad[1, 2] != 0).all() and (grad[0, 2] == 0).all()
