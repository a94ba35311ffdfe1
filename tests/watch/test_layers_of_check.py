"""Check and watch find the same layers, with the same states, in every kind of residual stream."""

import more_kinds as more
import pytest
import stream_kinds as kinds
import torch
from torch import Tensor, nn

import rankfall
from rankfall.check.report import check
from rankfall.errors import RankfallError
from rankfall.rank.residual import relative_residual


class ValueResidualBlock(kinds.Block):
    """Hands its values on to the next block, beside the state."""

    def forward(self, pair: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        x, first = pair
        x = x + self.attention(0.9 * x + 0.1 * first)
        return x + self.mlp(x), first


class ValueResidual(kinds.Stack):
    def __init__(self) -> None:
        super().__init__(ValueResidualBlock)

    def forward(self, x: Tensor) -> Tensor:
        pair = self.embed(x), x.flip(-1)
        for block in self.blocks:
            pair = block(pair)
        return self.head(pair[0])


class ReversibleBlock(kinds.Block):
    def forward(self, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
        left = left + self.attention(right)
        return left, right + self.mlp(left)


class Reversible(kinds.Stack):
    def __init__(self) -> None:
        super().__init__(ReversibleBlock)

    def forward(self, x: Tensor) -> Tensor:
        left, right = self.embed(x), x
        for block in self.blocks:
            left, right = block(left, right)
        return self.head(left + right)


class SeveralStreams(kinds.Stack):
    """Each token has three streams, from which a block reads the mean and to each of which it adds a share."""

    def forward(self, x: Tensor) -> Tensor:
        shares = torch.tensor([1.0, 0.5, -0.3])[:, None]
        streams = self.embed(x).unsqueeze(2) * shares  # (B, T, 3, D)
        for block in self.blocks:
            streams = streams + block.attention(streams.mean(2)).unsqueeze(2) * shares.flip(0)
            streams = streams + block.mlp(streams.mean(2)).unsqueeze(2) * shares
        return self.head(streams.mean(2))


class InlineLists(kinds.Stack):
    """The parts of a layer lie in lists, and the additions in the forward of the model."""

    def __init__(self) -> None:
        super().__init__(depth=0)
        self.attentions = nn.ModuleList(kinds.Attention() for _ in range(4))
        self.narrow = nn.ModuleList(nn.ModuleList([kinds.MLP()]) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x)
        for attention, (mlp,) in zip(self.attentions, self.narrow, strict=True):
            x = x + attention(x)
            x = x + mlp(x)
        return self.head(x)


def encoder() -> nn.Module:
    layer = nn.TransformerEncoderLayer(kinds.WIDTH, 2, 12, batch_first=True)
    return nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)


class EncoderDecoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.both = nn.Transformer(kinds.WIDTH, 2, 2, 3, 12, dropout=0.0, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.both(x, x[:, :5])


class FlatPairs(kinds.Stack):
    """A list attention, MLP, attention, MLP, ..., whose parts their model adds."""

    def __init__(self) -> None:
        super().__init__(depth=0)
        self.blocks = nn.ModuleList(part() for _ in range(4) for part in (kinds.Attention, kinds.MLP))

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x)
        for block in self.blocks:
            x = x + block(x)
        return self.head(x)


class LightningLike(nn.Module):
    """A module whose step calls another one, and is itself never called."""

    def __init__(self) -> None:
        super().__init__()
        self.net, self.loss = kinds.Stack(), nn.MSELoss()

    def training_step(self, x: Tensor) -> Tensor:
        return self.net(x)


KINDS = {
    "plain encoder": encoder,
    "tokens first": lambda: nn.TransformerEncoder(
        nn.TransformerEncoderLayer(kinds.WIDTH, 2, 12), 3, enable_nested_tensor=False
    ),
    "channels first": kinds.Channels,
    "flat list of pairs": FlatPairs,
    "list of pairs": more.Pairs,
    "halves that a block joins": more.Halves,
    "x0 within blocks": more.Speedrun,
    "one block, called again": more.Universal,
    "gates": lambda: kinds.Stack(kinds.Highway),
    "tuples": kinds.Tuples,
    "x0 skip": kinds.FromFirst,
    "value residual": ValueResidual,
    "reversible": Reversible,
    "encoder-decoder": EncoderDecoder,
    "looped": kinds.Looped,
    "inline, called again": kinds.Inline,
    "several streams": SeveralStreams,
    "parts in lists": InlineLists,
}


def watched(model: nn.Module, inputs: Tensor) -> list[dict]:
    """Return the rows of the second of two steps that change nothing."""
    rows: list[dict] = []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with rankfall.watch(model, every=1, to=rows.extend):
        for _ in range(2):
            getattr(model, "training_step", model)(inputs).square().sum().backward()
            optimizer.step()
    return [row for row in rows if row["step"] == 2]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
def test_check_and_watch_agree_on_layers_and_their_states(kind):
    torch.manual_seed(0)
    model, inputs = KINDS[kind]().eval(), kinds.states(4, kinds.TOKENS, kinds.WIDTH)
    rows = watched(model, inputs)
    reports = check(model, inputs, changes=False)[::-1]  # of streams with the same layers the first counts
    streams = {tuple(layer.name for layer in one.layers[1:]): one for one in reports}
    names = tuple(row["block"] for row in rows[1:])
    assert names in streams
    assert [row["layer"] for row in rows] == list(range(len(names) + 1))
    for row, expected in zip(rows, streams[names].layers, strict=True):
        for name in ("residual", "norm", "effective_rank"):
            assert row[name] == pytest.approx(getattr(expected, name), rel=1e-4), (row["layer"], name)
        assert (row["entropy"] is None) == (expected.entropy is None)


def test_the_module_that_is_called_is_searched():
    torch.manual_seed(0)
    model = LightningLike().eval()
    rows = watched(model, kinds.states(4, kinds.TOKENS, kinds.WIDTH))
    assert [row["block"] for row in rows] == ["", *(f"net.blocks.{number}" for number in range(6))]


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


def test_training_is_the_same_bit_by_bit_with_layers_that_are_no_modules():
    def train(watching: bool) -> list[Tensor]:
        torch.manual_seed(0)
        model, inputs = kinds.Inline(), kinds.states(4, kinds.TOKENS, kinds.WIDTH)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        watcher = rankfall.watch(model, every=1, to=[].extend) if watching else None
        for _ in range(3):
            optimizer.zero_grad()
            model(inputs).square().mean().backward()
            optimizer.step()
        if watcher is not None:
            watcher.close()
        assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
        return [*(weight.detach() for weight in model.parameters()), torch.get_rng_state()]

    assert all(torch.equal(one, other) for one, other in zip(train(False), train(True), strict=True))


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
