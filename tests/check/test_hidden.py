"""Tests of what reaches other tokens past a mask, of gradients that are wrong or never come, and of outputs that are probabilities."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from rankfall.check.derivative import trained, wrong_gradient
from rankfall.check.hidden import is_visible
from rankfall.check.named import FAIL, PASS, WARN
from rankfall.check.reads import groups_of, heads_of, is_triangle, looks_random
from rankfall.check.report import check
from rankfall.streams.examine import examine

WIDTH, HEADS = 32, 4


class Block(nn.Module):
    """A pre-norm block whose parts can be broken one by one. `sink`: what is added to scores with the first token, by head."""

    sink = torch.zeros(HEADS, 1, 1)

    def __init__(self, bug: str = "", causal: bool = False) -> None:
        super().__init__()
        self.bug, self.causal = bug, causal
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(3))
        self.q, self.out = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.k, self.v = (nn.Linear(WIDTH, WIDTH // 2) for _ in range(2))  # two heads of four
        self.conv = nn.Conv1d(WIDTH, WIDTH, 3, padding=1)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))
        if "side" in bug or bug == "ahead":
            self.side = nn.Linear(WIDTH, WIDTH)
        self.gate = nn.Parameter(torch.zeros(()) if "gate" in bug else torch.ones(()))
        if bug == "gate and map":
            nn.init.zeros_(self.mlp[2].weight), nn.init.zeros_(self.mlp[2].bias)

    def forward(self, x: torch.Tensor, pad: torch.Tensor, first: torch.Tensor | None = None) -> torch.Tensor:
        y = self.norms[0](x)
        y = y + F.pad(y, (0, 0, -1, 1)) if self.bug == "ahead" else y
        q, k, v = (f(y).unflatten(-1, (-1, WIDTH // HEADS)).transpose(1, 2) for f in (self.q, self.k, self.v))
        k = k.repeat_interleave(2, 1)
        v = v.repeat(1, 2, 1, 1) if self.bug == "groups" else v.repeat_interleave(2, 1)
        scores = torch.einsum("bhdt,bhds->bhts", q.mT, k.mT) / (WIDTH // HEADS) ** 0.5
        scores = scores + self.sink * (torch.arange(x.shape[1]) == 0)
        if self.causal:
            behind = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril(-1 if self.bug == "diagonal" else 0)
            scores = scores * behind if self.bug == "product" else scores.masked_fill(~behind, -1e9)
        scores = scores.masked_fill(pad[:, None, None], -1e9)
        x = x + self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
        if self.bug == "ahead":
            x = x + self.side(F.pad(self.norms[1](x), (0, 0, 1, -1)))
        if not self.causal:
            y = self.norms[1](x).masked_fill(pad[..., None] & (self.bug != "convolution"), 0.0)
            x = x + self.conv(y.mT).mT
        mixed = x if first is None else x + (first.detach() if self.bug == "detached" else first)
        return x + self.gate * self.mlp(self.norms[2](mixed))


class Model(nn.Module):
    def __init__(self, bug: str = "", causal: bool = False) -> None:
        super().__init__()
        self.bug, self.blocks = bug, nn.ModuleList(Block(bug, causal) for _ in range(3))
        self.table, self.head = nn.Embedding(20, WIDTH), nn.Linear(WIDTH, 20)
        place = torch.randn(12, WIDTH) * 0.1
        if bug == "one head":
            self.blocks[0].sink = 9 * torch.eye(HEADS)[0, :, None, None]
        self.place = place if bug == "unregistered" else nn.Parameter(place)

    def forward(self, tokens: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        pad = torch.arange(tokens.shape[1])[None] >= lengths[:, None]
        x = self.table(tokens) + self.place
        first, side = None, x
        for block in self.blocks:
            first, x = x, block(x + side if "side" in self.bug else x, pad, first)
            side = block.side(side) if "side" in self.bug else side
        if self.bug == "memory":
            return self.head(x), first.detach()
        if self.bug == "detached side":
            return self.head(x + side.detach())
        if self.bug == "mean":
            return self.head(x.mean(1))
        logits = self.head(x[0] if self.bug == "sample" else x)
        axis = {"softmax": -1, "first axis": 0}.get(self.bug)
        if self.bug == "log":
            return logits.log_softmax(-1)
        return logits if axis is None else logits.softmax(axis)


def result_of(name: str, bug: str = "", causal: bool = False, loss=None):
    torch.manual_seed(0)
    inputs = torch.randint(20, (3, 12)), torch.tensor([12, 8, 10])
    (report,) = check(Model(bug, causal), inputs, changes=False, only=(name,), loss=loss)
    return report.results[0]


@pytest.mark.parametrize(
    ("bug", "causal", "name", "verdict", "words"),
    [
        ("", False, "mask-works", PASS, "6 of 36 tokens are hidden"),
        ("convolution", False, "mask-works", FAIL, "does a convolution or a mean read padding?"),
        ("mean", False, "mask-works", FAIL, "is it pooled over padding"),
        ("", True, "no-future-leak", PASS, "causal in 3 layers"),
        ("product", True, "no-future-leak", FAIL, "scores of layer 1 are multiplied by a triangular mask"),
        ("", True, "attention-alive", PASS, "12 heads"),
        ("groups", True, "attention-alive", FAIL, "heads share keys as 0,1 | 2,3, and values as 0,2 | 1,3"),
        ("one head", True, "attention-alive", PASS, "12 heads, 1 of which reads one token"),
        ("ahead", True, "no-future-leak", FAIL, "sees 1 token ahead in 3 of 6 branches"),
        ("diagonal", True, "attention-alive", WARN, "no token of layer 1 reads itself"),
        ("", False, "gradients-flow", PASS, "times as large"),
        ("gate", False, "gradients-flow", PASS, "times as large"),
        ("gate and map", False, "gradients-flow", FAIL, "are a gate and the map behind it both zero?"),
        ("detached", False, "gradients-flow", WARN, "is not the derivative of the output"),
        ("memory", False, "gradients-flow", PASS, "times as large"),
        (
            "side",
            False,
            "gradients-flow",
            PASS,
            "no output reads 1 matrices of the last layer, blocks.2.side.weight first",
        ),
        (
            "detached side",
            False,
            "gradients-flow",
            FAIL,
            "1 parameters are used and get no gradient, blocks.2.side.weight",
        ),
        ("unregistered", False, "gradients-flow", WARN, "place looks like random weights"),
        ("sample", False, "samples-independent", WARN, "x[0] instead of x[:, 0]"),
    ],
)
def test_a_bug_is_named_and_the_sound_model_passes(bug, causal, name, verdict, words):
    result = result_of(name, bug, causal)
    assert result.verdict == verdict and words in result.sentence, result


class Grouped(nn.Module):
    """Attention whose heads share keys in pairs, with values of the same heads or of others."""

    def __init__(self, alike: bool, fused: bool) -> None:
        super().__init__()
        self.q, self.kv, self.alike, self.fused = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH), alike, fused

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q = self.q(x).unflatten(-1, (HEADS, -1)).transpose(1, 2)
        k, v = (part.unflatten(-1, (2, -1)).transpose(1, 2) for part in self.kv(x).chunk(2, -1))
        k, v = k.repeat_interleave(2, 1), v.repeat_interleave(2, 1) if self.alike else v.repeat(1, 2, 1, 1)
        if self.fused:
            return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        return ((q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v).transpose(1, 2).flatten(2)


class Beside(nn.Module):
    """Two attentions in one branch."""

    def __init__(self, *parts: nn.Module) -> None:
        super().__init__()
        self.norm, self.parts = nn.LayerNorm(WIDTH), nn.ModuleList(parts)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(x)
        return x + (self.parts[0](y) + self.parts[1](y))


@pytest.mark.parametrize("fused", [(False, False), (True, True), (True, False)])
@pytest.mark.parametrize("wrong", [0, 1])
def test_heads_that_share_keys_and_values_unlike_are_found_beside_another_attention(wrong, fused):
    torch.manual_seed(0)
    blocks = (Beside(*(Grouped(number != wrong, fused[number]) for number in (0, 1))) for _ in range(3))
    (report,) = check(nn.Sequential(*blocks), torch.randn(3, 12, WIDTH), changes=False, only=("attention-alive",))
    result = report.results[0]
    assert result.verdict == FAIL and "heads share keys as 0,1 | 2,3, and values as 0,2 | 1,3" in result.sentence
    assert result.where == f"0.parts.{wrong}"


def nll(output):
    return F.nll_loss(output.flatten(0, 1), torch.randint(20, (36,), generator=torch.Generator().manual_seed(0)))


@pytest.mark.parametrize(
    ("bug", "verdict", "words"),
    [
        ("log", PASS, "is that of equal probabilities"),
        ("softmax", FAIL, "takes no logarithm"),
        ("first axis", FAIL, "a softmax over its first axis"),
    ],
)
def test_probabilities_are_recognised(bug, verdict, words):
    result = result_of("initial-loss", bug, loss=nll)
    assert result.verdict == verdict and words in result.sentence, result


def test_padding_on_the_left_of_a_causal_model_is_no_leak():
    """With -1e9 as a mask, padding that may read nothing reads all tokens alike, later ones too."""

    class Left(Model):
        def forward(self, tokens, mask):
            x = self.table(tokens)
            for block in self.blocks:
                x = block(x, ~mask)
            return self.head(x)

    torch.manual_seed(0)
    mask = torch.ones(3, 12, dtype=torch.bool)
    mask[1, :7] = False
    (report,) = check(Left(causal=True), (torch.randint(20, (3, 12)), mask), changes=False, only=("no-future-leak",))
    assert report.results[0].verdict == PASS and "one way" in report.kind


class Steps(nn.Module):
    """A causal stream in code of the model itself, of two tokens a step. Its softmax may be over heads."""

    def __init__(self, alias: bool = False, axis: int = -1) -> None:
        super().__init__()
        self.alias, self.softmax = alias, nn.ModuleList(nn.Softmax(axis) for _ in range(2))
        self.maps = nn.ModuleList(nn.Linear(WIDTH, 3 * WIDTH) for _ in range(2))

    def forward(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        x = torch.stack([left + right] * 2 if self.alias else [left, right], 2).flatten(1, 2)
        behind = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        for qkv, softmax in zip(self.maps, self.softmax):
            q, k, v = qkv(x).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
            scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~behind, -1e9)
            x = x + (softmax(scores) @ v).transpose(1, 2).flatten(2)
        return x


@pytest.mark.parametrize(
    ("options", "name", "verdict", "words"),
    [
        ({}, "no-future-leak", PASS, "causal in 2 layers"),
        ({"alias": True}, "no-future-leak", WARN, "each step of the inputs has 2 equal tokens"),
        ({"axis": 1}, "attention-alive", FAIL, "the softmax in softmax.0 is over axis 1"),
    ],
)
def test_tokens_of_steps_differ_and_a_softmax_in_a_layer_without_module_is_over_keys(options, name, verdict, words):
    torch.manual_seed(0)
    (report,) = check(Steps(**options), tuple(torch.randn(2, 2, 6, WIDTH)), changes=False, only=(name,))
    assert report.results[0].verdict == verdict and words in report.results[0].sentence, report.results[0]


def test_the_first_of_few_lags_is_no_first_token():
    (heads,) = heads_of(1, "", torch.tensor([0.8, 0.1, 0.1]).expand(2, HEADS, 8, 3), None)
    assert bool(heads.first.isnan().all()) and float(heads.largest[0]) == pytest.approx(0.8)


def test_what_two_streams_find_in_one_place_is_said_once():
    class Both(nn.Transformer):
        def forward(self, x):
            return super().forward(x, x) * self.__dict__["scale"][0]

    model = Both(WIDTH, HEADS, 2, 2, 64, batch_first=True)
    model.__dict__["scale"] = [nn.Parameter(torch.ones(()))]
    reports = check(model, torch.randn(2, 12, WIDTH), changes=False, only=("gradients-flow",))
    (result,) = [result for report in reports for result in report.results]
    assert len(reports) == 2 and "parameters are used that model.parameters() lacks" in result.sentence


def test_a_float_mask_in_a_plain_attribute_is_measured():
    class Tutorial(nn.Module):
        def __init__(self):
            super().__init__()
            layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 64, batch_first=True)
            self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.mask = nn.Transformer.generate_square_subsequent_mask(12)

        def forward(self, x):
            return self.encoder(x, mask=self.mask)

    (report,) = check(Tutorial(), torch.randn(2, 12, WIDTH), changes=False, only=("attention-alive", "no-future-leak"))
    assert {result.verdict for result in report.results} == {PASS}


def test_derivatives_of_a_quadratic_and_of_a_straight_through_estimator():
    """The derivative of (w x)^2 is right; that of a rounding with a straight-through gradient is not that of the output."""

    class Power(nn.Module):
        def __init__(self, detach):
            super().__init__()
            self.detach, self.layers = detach, nn.ModuleList(nn.Linear(4, 4, bias=False) for _ in range(2))

        def forward(self, x):
            for layer in self.layers:
                y = layer(x)
                x = x + y * (y.detach() if self.detach else y)
            return x

    torch.manual_seed(0)
    for detach in (False, True):
        examined = examine(Power(detach), torch.randn(2, 5, 4))
        weights = dict(examined.model.named_parameters())
        for weight in weights.values():
            weight.requires_grad_(True)
        wrong = wrong_gradient(examined, examined.flows[0], weights)
        assert (wrong is not None) == detach
        if wrong:  # the last layer gets half of its gradient
            assert wrong[0] == "layers.1.weight" and wrong[2] == pytest.approx(2 * wrong[1], rel=1e-4)
        with trained(examined, examined.flows[0], weights) as silent:
            assert silent == set()


class Pairs(nn.Module):
    """Compares all texts with all others, as CLIP does. The last layer keeps the first token alone, as in FT-Transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.ModuleList([nn.MultiheadAttention(16, 2, batch_first=True), nn.Linear(16, 16)]) for _ in range(3)
        )

    def forward(self, x, other):
        for number, (attention, linear) in enumerate(self.layers):
            kept = x[:, :1] if number == 2 else x
            x = kept + attention(kept, x, x)[0]
            x = x + linear(x)
        return x[:, 0] @ other.T


def test_scores_of_pairs_of_samples_and_a_last_layer_of_one_token_are_sound():
    torch.manual_seed(0)
    (report,) = check(Pairs(), (torch.randn(3, 9, 16), torch.randn(3, 16)), changes=False)
    assert [report.result(name).verdict for name in ("samples-independent", "rank-kept")] == [PASS, PASS]


def test_a_table_of_signs_is_no_triangular_mask():
    distance = torch.arange(6)[:, None] - torch.arange(6)
    assert not is_triangle(distance.sign()) and is_triangle(distance >= 0) and is_triangle(distance > 0)


def test_tables_and_masks_do_not_look_random():
    time = torch.arange(32)[:, None] * 10000 ** (-torch.arange(16) / 16)
    tables = [torch.cat([time.sin(), time.cos()], 1), torch.ones(8, 8).tril(), torch.linspace(0, 1, 64), torch.eye(8)]
    assert not any(map(looks_random, tables))
    torch.manual_seed(0)
    assert all(looks_random(torch.randn(8, 16)) and looks_random(torch.rand(64)) for _ in range(20))


def test_outputs_are_visible_along_the_axis_of_tokens_steps_or_samples():
    hidden = torch.zeros(2, 6, dtype=torch.bool)
    hidden[1, 4:] = True
    tokens, steps = torch.zeros(2, 6, 5, dtype=torch.bool), torch.zeros(2, 3, 5, dtype=torch.bool)
    tokens[1, 4:], steps[1, 2] = True, True
    assert not is_visible(tokens, hidden) and not is_visible(steps, hidden)
    tokens[1, 3], steps[1, 1] = True, True
    assert is_visible(tokens, hidden) and is_visible(steps, hidden)
    assert is_visible(torch.ones(2, 5, dtype=torch.bool), hidden)
    assert is_visible(torch.ones(2, 6, dtype=torch.bool), hidden) and not is_visible(
        hidden, hidden
    )  # a number for each token


def test_heads_are_grouped_by_equal_numbers():
    heads = torch.randn(1, 2, 3, 4)
    assert groups_of(heads.repeat(1, 2, 1, 1)) == [0, 1, 0, 1]
    assert groups_of(heads.repeat_interleave(2, 1)) == [0, 0, 2, 2]


class HalfHeads(nn.Module):
    """Four maps behind the layers, of which the outputs are halves."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(3))
        names = ("zeta", "alpha", "mid", "beta")
        self.heads = nn.ModuleDict({name: nn.Linear(WIDTH, 8) for name in names})

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        pad = torch.zeros(x.shape[:2], dtype=torch.bool)
        for block in self.blocks:
            x = block(x, pad)
        return tuple(head(x)[..., :4] for head in self.heads.values())


def test_of_several_heads_with_unread_outputs_the_first_is_named():
    torch.manual_seed(0)
    (report,) = check(HalfHeads(), torch.randn(3, 12, WIDTH), changes=False, only=("gradients-flow",))
    assert report.results[0].where == "heads.zeta.weight", report.results[0]
