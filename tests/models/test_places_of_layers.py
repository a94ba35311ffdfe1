"""Guards which additions are layers of a stream, and where each layer's state leaves it, in modules that are put together in other ways."""

import own_modules as own
import pytest
import torch
from torch import nn

from rankfall import residuals
from rankfall.check.report import check
from rankfall.models.modules.examine import examine
from rankfall.rank.residual import relative_residual

WHOLE = "transformer"


def by_hand(states):
    return pytest.approx(
        [relative_residual(state.double()).mean().item() for state in states], rel=1e-6
    )  # rotations are in float32


class Deferred(nn.Module):
    """A layer that returns its branch beside the state, and leaves the sum to the next."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.mixer = own.RMS(own.WIDTH), own.RotaryAttention()

    def forward(self, branch, state=None):
        state = branch if state is None else branch + state
        return self.mixer(self.norm(state)), state


class DeferredNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.layers = nn.Embedding(50, own.WIDTH), nn.ModuleList(Deferred() for _ in range(4))
        self.norm = own.RMS(own.WIDTH)

    def forward(self, tokens):
        branch, state = self.embed(tokens), None
        for layer in self.layers:
            branch, state = layer(branch, state)
        return self.norm(branch + state)


def test_a_sum_that_the_next_layer_makes_is_of_the_layer_that_makes_its_branch():
    torch.manual_seed(0)
    model, states = DeferredNet().double().eval(), []
    for layer in model.layers:
        layer.register_forward_hook(lambda module, given, output: states.append(output[0] + output[1]))
    model(own.tokens())
    (flow,) = examine(model, own.tokens()).flows
    assert flow.layers == tuple(f"layers.{n}" for n in range(4))
    assert [branch.name for branch in flow.branches] == ["mixer"] * 4
    first = model.embed(own.tokens())
    assert residuals(model, own.tokens())[WHOLE] == by_hand([first, *states[:4]])
    assert residuals(model, own.tokens(), blocks=["layers.1", "layers.2"])[WHOLE] == by_hand(states[:3])
    assert residuals(model, own.tokens(), blocks=["layers.3"])[WHOLE] == by_hand(states[2:4])


class Block(nn.Module):
    """A pre-norm layer."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(own.WIDTH), nn.MultiheadAttention(own.WIDTH, 2, batch_first=True)
        self.norm2, self.mlp = nn.LayerNorm(own.WIDTH), nn.Linear(own.WIDTH, own.WIDTH)

    def forward(self, x):
        y = self.norm1(x)
        x = x + self.attention(y, y, y)[0]
        return x + self.mlp(self.norm2(x))


class Reads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(own.WIDTH, 2, batch_first=True)

    def forward(self, latents, x):
        return latents + self.attention(latents, x, x)[0]


class Alternating(nn.Module):
    """A perceiver: its latents read, then layers of a list of their own; again."""

    def __init__(self) -> None:
        super().__init__()
        self.latents = nn.Parameter(torch.randn(4, own.WIDTH))
        self.reads = nn.ModuleList(Reads() for _ in range(2))
        self.selfs = nn.ModuleList(nn.ModuleList(Block() for _ in range(2)) for _ in range(2))

    def forward(self, x):
        latents = self.latents.expand(len(x), -1, -1)
        for read, blocks in zip(self.reads, self.selfs):
            latents = read(latents, x)
            for block in blocks:
                latents = block(latents)
        return latents


def test_layers_of_two_lists_by_turns_are_all_layers():
    torch.manual_seed(0)
    model, x = Alternating().double().eval(), own.vectors(2, 9, own.WIDTH).double()
    (flow,) = examine(model, x).flows
    assert flow.layers == ("reads.0", "selfs.0.0", "selfs.0.1", "reads.1", "selfs.1.0", "selfs.1.1")
    states = [model.latents.expand(2, -1, -1)]
    for read, blocks in zip(model.reads, model.selfs):
        states.append(read(states[-1], x))
        states += [first := blocks[0](states[-1]), blocks[1](first)]
    assert residuals(model, x)[WHOLE] == by_hand([state.detach() for state in states])


class Turned(nn.Module):
    """Layers over places, then layers over times."""

    def __init__(self) -> None:
        super().__init__()
        self.places, self.times = (nn.ModuleList(Block() for _ in range(2)) for _ in range(2))

    def forward(self, x):  # (times, places, width)
        for block in self.places:
            x = block(x)
        x = x.transpose(0, 1).contiguous()
        for block in self.times:
            x = block(x)
        return x


def test_layers_over_other_tokens_make_no_curve_with_the_first_and_are_said():
    torch.manual_seed(0)
    (report,) = check(Turned(), own.vectors(3, 5, own.WIDTH), changes=False)
    assert (report.depth, report.tokens) == (2, 5)
    assert "4 more residual additions of this stream are in no layer, in times.0, times.1:" in report.notes[0]


class Holds(nn.Module):
    """A block inside a module, which a linear map of two states may come before."""

    def __init__(self, joins: bool = False) -> None:
        super().__init__()
        self.join, self.block = nn.Linear(2 * own.WIDTH, own.WIDTH) if joins else None, Block()

    def forward(self, x, kept=None):
        return self.block(x if self.join is None else self.join(torch.cat([x, kept], -1)))


class Shaped(nn.Module):
    """Like a U: long skips are joined by a map, so that each layer on the way up is a stream of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.middle = nn.ModuleList(Holds() for _ in range(3)), Holds()
        self.up = nn.ModuleList(Holds(True) for _ in range(3))

    def forward(self, x):
        kept = []
        for layer in self.down:
            kept.append(x := layer(x))
        x = self.middle(x)
        for layer in self.up:
            x = layer(x, kept.pop())
        return x


def test_a_layer_of_the_same_class_beside_a_list_is_one_and_streams_have_names_of_their_own():
    torch.manual_seed(0)
    flows = examine(Shaped(), own.vectors(2, 9, own.WIDTH)).flows
    assert [flow.name for flow in flows] == ["down", "up.2", "up.1", "up.0"]
    assert flows[0].layers == ("down.0", "down.1", "down.2", "middle") and flows[1].layers == ("up.2.block",)
    assert [branch.name for branch in flows[0].of_layer(1)] == ["block.attention", "block.mlp"]
    assert [branch.name for branch in flows[1].of_layer(1)] == ["attention", "mlp"]


class Rolled(Block):
    """The layer itself moves what its attention returns, and adds sums."""

    def forward(self, x):
        y = self.norm1(x)
        x = x + self.attention(y, y, y)[0].roll(1, 1)
        return x + 3 * x.cumsum(1).flip(1)


def test_what_a_layer_moves_is_called_by_the_part_that_made_it_and_what_it_makes_itself_is_not_the_layer():
    torch.manual_seed(0)
    model = nn.Sequential(*(Rolled() for _ in range(3)))
    (report,) = check(model, own.vectors(2, 9, own.WIDTH))
    assert report.layers[1].parts == ["attention mixes tokens", "the layer itself mixes tokens"]
    assert any("without what the layer itself adds (mixes tokens)" in line for line in report.verdict)


class Ends(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers, self.last = nn.ModuleList(Block() for _ in range(3)), nn.Linear(own.WIDTH, own.WIDTH)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        x = x + self.last(x)
        return x + self.last(x).relu()


def test_additions_that_are_in_no_layer_are_said():
    torch.manual_seed(0)
    (report,) = check(Ends(), own.vectors(2, 9, own.WIDTH), changes=False)
    assert report.depth == 3
    (note,) = report.notes
    assert note.startswith("2 more residual additions of this stream are in no layer, in the model itself")
