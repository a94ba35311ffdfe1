"""Where a pass cannot be recorded, layers are the blocks that the user names, or the list of modules of one class with the most weights;
where layers are no modules, or training runs otherwise than the recorded pass. That check and watch agree is in tests/models."""

import re

import pytest
import stream_kinds as kinds
import torch
from torch import Tensor, nn
from watched import Gpt, GptBlock, gpt, train, train_watched

import rankfall
from rankfall.errors import RankfallError
from rankfall.rank.residual import relative_residual
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

    train(gpt(depth=2), 1, begin)[1].close()
    assert [row["block"] for row in rows] == ["", "transformer.h.0", "transformer.h.1"]


@pytest.mark.parametrize(
    ("model", "wanted", "message"),
    [
        (Gpt(2), "layers.*", "names no module of the model; there are"),
        (Gpt(2), ["h.0"], "'h.0' names no module of the model; there are"),
        ("gpt2", None, "takes a torch.nn.Module, not str"),
    ],
)
def test_what_cannot_be_named_is_one_line(model, wanted, message):
    with pytest.raises(RankfallError, match=message) as error:
        rankfall.watch(model, to=[].extend, blocks=wanted)
    assert "\n" not in str(error.value)


def test_what_is_measured_of_blocks_is_said_in_one_line(caplog):
    """A large model, say, whose copy would take long."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rankfall.watch.layers.MOST_WORK", 0)
        _, rows = train_watched(gpt(depth=2), 2)
    (message,) = caplog.messages
    assert "what blocks return, 2 x GptBlock (transformer.h.0 .. transformer.h.1), since" in message
    assert "a copy of it would take long" in message
    _, followed = train_watched(gpt(depth=2), 2)
    assert [row | {"time": 0} for row in rows] == [row | {"time": 0} for row in followed]


def test_the_axis_of_the_batch_is_known_or_asked_for():
    inner = GptBlock(16, 2)
    inner.attn = nn.MultiheadAttention(16, 2)
    layer = nn.TransformerEncoderLayer(8, 2, 8)
    assert axis_of_batch({"0": layer}, None) == 1 and axis_of_batch({"0": layer}, 0) == 0
    assert axis_of_batch({"0": nn.TransformerEncoderLayer(8, 2, 8, batch_first=True)}, None) == 0
    assert axis_of_batch({"0": GptBlock(16, 2)}, None) == 0
    with pytest.raises(RankfallError, match=r"h\.0\.attn .*batch_first=False: say batch_axis=1"):
        axis_of_batch({"h.0": inner}, None)
    with pytest.raises(RankfallError, match="batch_axis is 2"):
        rankfall.watch(gpt(), to=[].extend, batch_axis=2)
    with pytest.raises(RankfallError, match=r"returns \(6, 4, 8\) where the model was given \(4, 6\)"):
        check_not_turned(torch.zeros(6, 4, 8), [(4, 6)], "h.0")


class Dropped(kinds.Block):
    """A layer that training leaves out at random."""

    def forward(self, x: Tensor) -> Tensor:
        return x if self.training and torch.rand(()) < 0.7 else super().forward(x)


class Noisy(kinds.Block):
    """A block with another addition in training, before its own."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x + torch.ones_like(x) if self.training else x)


@pytest.mark.parametrize("block", [Dropped, Noisy])
def test_a_training_pass_unlike_the_recorded_one_is_read_by_blocks(block, caplog):
    torch.manual_seed(0)
    model, rows, states = kinds.Stack(block), [], []
    model.blocks[-1].register_forward_hook(lambda module, given, output: states.append(output.detach().double()))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with rankfall.watch(model, every=1, to=rows.extend):
        for _ in range(12):
            model(kinds.states()).square().mean().backward()
            optimizer.step()
    assert len(caplog.messages) == 1 and "what blocks return" in caplog.messages[0]
    assert rows[-1]["step"] == 12 and rows[-1]["layer"] == 6
    expected = relative_residual(states[-1]).mean().item()
    assert rows[-1]["residual"] == pytest.approx(expected, rel=1e-5)


def test_a_model_without_layers_is_refused_in_its_first_pass():
    class Maps(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(8, 9), nn.Linear(9, 8)

        def forward(self, x: Tensor) -> Tensor:
            return self.second(self.first(x))

    model = Maps()
    rankfall.watch(model, to=[].extend)
    with pytest.raises(RankfallError, match="no layers were found in Maps"):
        model(kinds.states())
    model(kinds.states())  # the watcher has gone
