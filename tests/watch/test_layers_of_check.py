"""Where layers are no modules, or training runs otherwise than the recorded pass; that check and watch agree is in tests/models."""

import pytest
import stream_kinds as kinds
import torch
from torch import Tensor, nn

import rankfall
from rankfall.errors import RankfallError
from rankfall.rank.residual import relative_residual


class LightningLike(nn.Module):
    """A module whose step calls another one, and is itself never called."""

    def __init__(self) -> None:
        super().__init__()
        self.net, self.loss = kinds.Stack(), nn.MSELoss()


def test_the_module_that_is_called_is_searched():
    torch.manual_seed(0)
    model, rows = LightningLike().eval(), []
    with rankfall.watch(model, to=rows.extend) as watcher:
        model.net(kinds.states()).square().sum().backward()
        watcher.step()
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
