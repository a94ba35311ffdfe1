"""Where a pass cannot be recorded, layers are the blocks that the user names, or the list of modules of one class with the most weights."""

import re

import pytest
import torch
from torch import nn
from watched import Gpt, GptBlock, gpt, train

import rankfall
from rankfall.errors import RankfallError
from rankfall.watch.layers import list_blocks
from rankfall.watch.states import axis_of_batch, check_not_turned


class Experts(nn.Module):
    """More experts in a block than there are blocks."""

    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)) for _ in range(9))


def encoder(depth, **options):
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 8, **options), depth, enable_nested_tensor=False)


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (lambda: Gpt(3), ["transformer.h.0", "transformer.h.1", "transformer.h.2"]),
        (lambda: encoder(2), ["layers.0", "layers.1"]),
        (lambda: nn.Sequential(nn.Embedding(5, 16), GptBlock(16, 2), GptBlock(16, 2), nn.Linear(16, 5)), ["1", "2"]),
        (lambda: nn.ModuleDict({"body": nn.ModuleList(Experts() for _ in range(2))}), ["body.0", "body.1"]),
        (lambda: torch.compile(Gpt(2), backend="eager"), ["transformer.h.0", "transformer.h.1"]),
        (lambda: nn.ModuleList(nn.ModuleList([nn.Sequential(nn.Linear(4, 4)), GptBlock(16, 2)]) for _ in range(3)), ["0.1"]),
        (lambda: nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2)), []),
    ],
    ids=["nanoGPT", "encoder", "sequential", "experts", "compiled", "pairs", "maps"],
)  # fmt: skip
def test_the_list_of_blocks(make, names):
    assert list(list_blocks(make())) == names


@pytest.mark.parametrize(
    "wanted",
    ["transformer.h.*", "transformer.h", re.compile(r".*\.h\.\d"), ["transformer.h.0", "transformer.h.1"], "modules"],
    ids=str,
)
def test_layers_can_be_named(wanted):
    rows, named = [], []

    def begin(model):
        named.extend(list(model.transformer["h"])[:2] if wanted == "modules" else [])
        return rankfall.watch(model, to=rows.extend, blocks=named or wanted)

    _, watcher = train(gpt(depth=2), 1, begin)
    watcher.close()
    assert [row["block"] for row in rows] == ["", "transformer.h.0", "transformer.h.1"]


@pytest.mark.parametrize(
    ("model", "wanted", "said"),
    [
        (Gpt(2), "layers.*", "names no module of the model; there are"),
        (Gpt(2), ["h.0"], "'h.0' names no module of the model; there are"),
        ("gpt2", None, "takes a torch.nn.Module, not str"),
    ],
)
def test_what_cannot_be_named_is_one_line(model, wanted, said):
    with pytest.raises(RankfallError, match=said) as error:
        rankfall.watch(model, to=[].extend, blocks=wanted)
    assert "\n" not in str(error.value)


def test_what_is_measured_of_blocks_is_said_in_one_line(caplog):
    """A large model, say, whose copy would take long."""
    rows = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rankfall.watch.layers.MOST_WORK", 0)
        _, watcher = train(gpt(depth=2), 2, lambda model: rankfall.watch(model, every=1, to=rows.extend))
    watcher.close()
    (said,) = caplog.messages
    assert (
        "what blocks return, 2 x GptBlock (transformer.h.0 .. transformer.h.1), since" in said
        and "a copy of it would take long" in said
    )
    followed = []
    _, watcher = train(gpt(depth=2), 2, lambda model: rankfall.watch(model, every=1, to=followed.extend))
    watcher.close()
    same = [{name: value for name, value in row.items() if name != "time"} for row in rows]
    assert same == [{name: value for name, value in row.items() if name != "time"} for row in followed]


def test_the_axis_of_the_batch_is_known_or_asked_for():
    own = GptBlock(16, 2)
    own.attn = nn.MultiheadAttention(16, 2)
    layer = nn.TransformerEncoderLayer(8, 2, 8)
    assert axis_of_batch({"0": layer}, None) == 1 and axis_of_batch({"0": layer}, 0) == 0
    assert axis_of_batch({"0": nn.TransformerEncoderLayer(8, 2, 8, batch_first=True)}, None) == 0
    assert axis_of_batch({"0": GptBlock(16, 2)}, None) == 0
    with pytest.raises(RankfallError, match=r"h\.0\.attn .*batch_first=False: say batch_axis=1"):
        axis_of_batch({"h.0": own}, None)
    with pytest.raises(RankfallError, match="batch_axis is 2"):
        rankfall.watch(gpt(), to=[].extend, batch_axis=2)
    with pytest.raises(RankfallError, match=r"returns \(6, 4, 8\) where the model was given \(4, 6\)"):
        check_not_turned(torch.zeros(6, 4, 8), [(4, 6)], "h.0")
