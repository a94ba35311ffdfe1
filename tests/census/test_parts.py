"""Check what a stream is made of on modules whose parts are known: norms and where they stand, scales, weights, masks, equal tokens."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from rankfall.census.gains import Gain
from rankfall.census.norms import norms
from rankfall.census.scales import scales, std_columns
from rankfall.census.streams import mask_of, rows_of_stream
from rankfall.check.bands import kind_of
from rankfall.check.equal import constant_inputs
from rankfall.check.report import measure_stream
from rankfall.streams.examine import Examined, examine
from rankfall.streams.sized import has_norm

WIDTH, TOKENS = 16, 6


class Mix(nn.Module):
    """Attention by softmax, with a mask or without."""

    def __init__(self, causal: bool) -> None:
        super().__init__()
        self.maps = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.causal = causal

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.maps(x).chunk(3, -1)
        scores = q @ k.transpose(-2, -1) / WIDTH**0.5
        if self.causal:
            scores = scores.masked_fill(~torch.ones(scores.shape[-2:], dtype=torch.bool).tril(), -torch.inf)
        out: Tensor = scores.softmax(-1) @ v
        return out


class OwnBlock(nn.Module):
    def __init__(self, place: str, norm: type[nn.Module], causal: bool, skip: float) -> None:
        super().__init__()
        self.place, self.skip = place, skip
        self.attention, self.mlp = Mix(causal), nn.Linear(WIDTH, WIDTH, bias=False)
        self.norms = nn.ModuleList([norm(WIDTH), norm(WIDTH)])

    def forward(self, x: Tensor) -> Tensor:
        for norm, part in zip(self.norms, (self.attention, self.mlp)):
            if self.place == "before":
                x = self.skip * x + part(norm(x))
            elif self.place == "behind":
                x = self.skip * x + norm(part(x))
            else:
                x = norm(self.skip * x + part(x))
        return x


class Stack(nn.Module):
    def __init__(
        self, place: str = "before", norm: Any = nn.LayerNorm, causal: bool = False, skip: float = 1.0
    ) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed = nn.Linear(WIDTH, WIDTH)
        self.blocks = nn.ModuleList(OwnBlock(place, norm, causal, skip) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        return x


def stacked(**how: Any) -> Examined:
    return examine(Stack(**how), torch.randn(2, TOKENS, WIDTH, generator=torch.Generator().manual_seed(1)))


@pytest.mark.parametrize(
    ("place", "stands", "kind"),
    [
        ("before", "before the branch", "pre-norm"),
        ("behind", "behind the branch", None),
        ("after", "after the addition", "post-norm"),
    ],
)
@pytest.mark.parametrize(("norm", "of"), [(nn.LayerNorm, "layer"), (nn.RMSNorm, "rms"), (nn.Identity, "none")])
def test_norms_are_recognised_by_what_they_do_and_where_they_stand(
    place: str, stands: str, kind: str | None, norm: Any, of: str
) -> None:
    """A stream's kind says whether a norm stands on it, as a check does."""
    examined = stacked(place=place, norm=norm)
    (flow,) = examined.flows
    measured = norms(examined, flow)
    if of == "none":
        assert measured.kinds == [] and measured.places == ["none"]
        kind = "no norm on the stream"
    else:
        assert (measured.kinds, measured.places, measured.classes) == ([of], [stands], [norm.__name__])
    if kind is not None:
        rows = {row["kind"] for row in rows_of_stream(examined, flow)}
        assert rows == {f"both ways, attention, {kind}"} == {kind_of(flow, has_norm(examined, flow))}


@pytest.mark.parametrize("skip", [1.0, 0.5])
def test_the_factor_of_the_skip_is_found(skip: float) -> None:
    one = stacked(skip=skip)
    assert scales(one, one.flows[0])[2] == pytest.approx(skip, rel=1e-12)


def test_a_norm_between_leaves_no_factor_and_ratios_are_those_of_the_branch() -> None:
    after = stacked(place="after")
    assert scales(after, after.flows[0])[2] is None
    behind = stacked(place="behind", norm=nn.RMSNorm)
    mixing, tokenwise, _ = scales(behind, behind.flows[0])
    with torch.no_grad():
        x = behind.model.get_submodule("embed")(behind.arguments.args[0])
    # A normed branch has mean square 1.
    assert mixing[0] == pytest.approx(1 / float(x.pow(2).mean().sqrt()), rel=1e-3)
    assert len(mixing) == len(tokenwise) == 3


def test_deviations_of_weights_are_those_that_were_drawn() -> None:
    examined = stacked()
    (flow,) = examined.flows
    with torch.no_grad():
        for parameter in examined.model.parameters():
            if parameter.dim() == 2:
                parameter.copy_(torch.tensor([0.03, -0.03]).repeat(parameter.numel() // 2).view_as(parameter))
    stds = std_columns(examined, flow, {})  # none was brought to another size
    assert list(stds.values()) == pytest.approx([0.03, 0.12, 0.03, 0.03, 0], rel=1e-6)
    brought = std_columns(examined, flow, {"blocks.0.mlp.weight": Gain(0.5, 400)})
    assert brought["init_std_most"] == 0.5 and brought["as_released"] == pytest.approx(1 / 6)
    assert std_columns(examined, flow, None)["as_released"] is None


@pytest.mark.parametrize(("causal", "mask"), [(True, "causal"), (False, "bidirectional")])
def test_masks_are_tried(causal: bool, mask: str) -> None:
    flow = stacked(causal=causal).flows[0]
    assert (mask_of(flow), flow.mixer) == (mask, "attention")


def test_equal_tokens_stay_equal_in_attention_without_positions() -> None:
    one = stacked()
    with torch.no_grad():
        found = constant_inputs(one, one.flows[0], measure_stream(one, one.flows[0]))
    assert found[:2] == (1, 1)
