"""Networks against torch's own layers, and the member axis against single networks."""

from functools import partial

import pytest
import torch
from helpers import network_of

network = partial(network_of, 3, 5, 6)


@pytest.mark.parametrize("placement", ["post", "pre"])
def test_block_is_torchs_encoder_layer(placement: str) -> None:
    """A block with residual, MLP and norm equals torch.nn.TransformerEncoderLayer with the same weights, member by member."""
    block, x = network(mlp="gelu", norm_placement=placement, noise=0.5).blocks[0], torch.randn(3, 4, 5, 8).double()
    output = block(x)
    for k in range(3):
        layer = torch.nn.TransformerEncoderLayer(
            8, 2, 32, dropout=0.0, activation="gelu", batch_first=True, norm_first=placement == "pre", dtype=torch.float64,
            layer_norm_eps=1e-12,
        )  # fmt: skip
        a = block.attention
        with torch.no_grad():
            layer.self_attn.in_proj_weight.copy_(torch.cat([m.weight[k].T for m in (a.query, a.key, a.value)]))
            layer.self_attn.in_proj_bias.copy_(torch.cat([m.bias[k, 0] for m in (a.query, a.key, a.value)]))
            for theirs, ours in (
                (layer.self_attn.out_proj, a.output),
                (layer.linear1, block.mlp.inner),
                (layer.linear2, block.mlp.outer),
            ):
                theirs.weight.copy_(ours.weight[k].T)
                theirs.bias.copy_(ours.bias[k, 0])
            for theirs, ours in ((layer.norm1, block.norm1), (layer.norm2, block.norm2)):
                theirs.weight.copy_(ours.gain[k].flatten())
                theirs.bias.copy_(ours.bias[k].flatten())
        torch.testing.assert_close(output[k], layer(x[k]), rtol=1e-12, atol=1e-12)


def test_same_seed_pairs_architectures() -> None:
    """Parameters of one name and shape start alike in every architecture, so a difference between two is never the luck of a draw."""
    plain, rich = network(residual="none"), network(mlp="gelu", normaliser="l2")
    theirs = dict(rich.named_parameters())
    for name, value in plain.named_parameters():
        torch.testing.assert_close(value, theirs[name], rtol=0, atol=0)


def test_maps_rebuild_attention() -> None:
    """sum_h P_h (X W_h + 1 b_h) + 1 b_O from `maps` is what the layer does; `emit` gives one head of it with the whole bias."""
    attention, x = network(noise=0.5).blocks[0].attention, torch.randn(3, 4, 5, 8).double()
    weights = attention.weights(x)
    maps, head_bias, bias = attention.maps()
    each = weights @ (x.unsqueeze(2) @ maps.unsqueeze(1) + head_bias[:, None, :, None])  # (K, B, H, T, D)
    torch.testing.assert_close(each.sum(2) + bias[:, None, None], attention(x), rtol=1e-12, atol=1e-12)
    contexts = attention.contexts(weights, x)
    for h in range(2):
        one = attention.emit(contexts[:, :, h], h)
        torch.testing.assert_close(one, each[:, :, h] + bias[:, None, None], rtol=1e-12, atol=1e-12)
