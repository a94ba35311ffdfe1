"""Blocks are found in modules of many shapes, named where they are not, and one line says what was seen where there are none."""

import re

import pytest
import torch
from torch import nn
from watched import Gpt, GptBlock

from rankfall.errors import RankfallError
from rankfall.watch.blocks import find_blocks
from rankfall.watch.states import axis_of_batch


class Beside(nn.Module):
    """Blocks as members, and not in a list."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(5, 16)
        self.block1, self.block2, self.block3 = (GptBlock(16, 2) for _ in range(3))


class Experts(nn.Module):
    """More experts in a block than there are blocks."""

    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)) for _ in range(9))


class Scattered(nn.Module):
    """Each block in a module of another class."""

    def __init__(self):
        super().__init__()
        self.first = nn.ModuleDict({"inside": GptBlock(16, 2)})
        self.second = nn.Sequential(GptBlock(16, 2), nn.LayerNorm(16))


def encoder(depth, **options):
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 8, **options), depth, enable_nested_tensor=False)


@pytest.mark.parametrize(
    ("model", "names"),
    [
        (Gpt(3), ["transformer.h.0", "transformer.h.1", "transformer.h.2"]),
        (encoder(2), ["layers.0", "layers.1"]),
        (nn.Sequential(nn.Embedding(5, 16), GptBlock(16, 2), GptBlock(16, 2), nn.Linear(16, 5)), ["1", "2"]),
        (Beside(), ["block1", "block2", "block3"]),
        (nn.ModuleDict({"body": nn.ModuleList(Experts() for _ in range(2))}), ["body.0", "body.1"]),
        (Scattered(), ["first.inside", "second.0"]),
        (torch.compile(Gpt(2)), ["transformer.h.0", "transformer.h.1"]),
    ],
    ids=["nanoGPT", "encoder", "sequential", "members", "experts", "scattered", "compiled"],
)  # fmt: skip
def test_blocks_are_found(model, names):
    assert list(find_blocks(model).names) == names


def test_other_stacks_are_told():
    model = nn.ModuleDict({"encoder": encoder(2), "decoder": encoder(3)})
    assert find_blocks(model).others == ("encoder.layers",)
    assert "not watched: encoder.layers" in find_blocks(model).summary()
    assert find_blocks(Gpt(2)).others == find_blocks(model, "encoder.layers").others == ()


@pytest.mark.parametrize(
    "wanted",
    ["transformer.h.*", "transformer.h", re.compile(r".*\.h\.\d"), ["transformer.h.0", "transformer.h.1"], "modules"],
    ids=str,
)
def test_blocks_can_be_named(wanted):
    model = Gpt(2)
    found = find_blocks(model, list(model.transformer["h"]) if wanted == "modules" else wanted)
    assert found.names == ("transformer.h.0", "transformer.h.1")
    assert found.modules == tuple(model.transformer["h"])


@pytest.mark.parametrize(
    ("model", "wanted", "said"),
    [
        (nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2)), None, r"no blocks .* 2 x Linear \(0\), 1 x ReLU.*blocks="),
        (Gpt(2), "layers.*", "names no module of the model; there are"),
        (Gpt(2), ["h.0"], "'h.0' names no module of the model; there are"),
        ("gpt2", None, "takes a torch.nn.Module, not str"),
    ],
)  # fmt: skip
def test_what_cannot_be_found_is_one_line(model, wanted, said):
    with pytest.raises(RankfallError, match=said) as error:
        find_blocks(model, wanted)
    assert "\n" not in str(error.value)


def test_the_axis_of_the_batch_is_known_or_asked_for():
    own = GptBlock(16, 2)
    own.attn = nn.MultiheadAttention(16, 2)
    layer = nn.TransformerEncoderLayer(8, 2, 8)
    assert axis_of_batch([layer], ["0"], None) == 1 and axis_of_batch([layer], ["0"], 0) == 0
    assert axis_of_batch([nn.TransformerEncoderLayer(8, 2, 8, batch_first=True)], ["0"], None) == 0
    assert axis_of_batch([GptBlock(16, 2)], ["0"], None) == 0
    with pytest.raises(RankfallError, match=r"h\.0\.attn .*batch_first=False: say batch_axis=1"):
        axis_of_batch([own], ["h.0"], None)
    with pytest.raises(RankfallError, match="batch_axis is 2"):
        axis_of_batch([own], ["h.0"], 2)
