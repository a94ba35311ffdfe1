"""Small types whose parts hand on stages, whose inputs hold their noise, and whose branches drop an axis."""

import pytest
import torch
from torch import Tensor, nn

from rankfall.check.library import small_example
from rankfall.models.modules.examine import examine
from rankfall.models.modules.flow import MIXES, TOKENWISE


@pytest.mark.parametrize("kind", ["sam_hq", "time_series_transformer", "qwen3_asr_encoder", "gemma3n_audio"])
def test_types_that_need_these_rules_run(kind: str) -> None:
    model, _, inputs = small_example(kind, {}, 0)
    with torch.no_grad():
        found = model(**inputs)
    tensors = [one for one in found.values() if isinstance(one, Tensor) and one.is_floating_point()]
    assert tensors and all(one.isfinite().all() for one in tensors)


@pytest.mark.parametrize(("kind", "given"), [("vit_mae", "noise"), ("vilt", "image_embeds")])
def test_what_a_model_would_draw_in_a_pass_is_given(kind: str, given: str) -> None:
    model, _, inputs = small_example(kind, {}, 0)
    assert given in inputs
    with torch.no_grad():
        one, other = model(**inputs), model(**inputs)
    assert torch.equal(one.last_hidden_state, other.last_hidden_state)


class Squeezing(nn.Module):
    """Layers whose mixing branch returns rows without their axis of samples."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.ModuleList(nn.Linear(6, 6) for _ in range(3))
        self.maps = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:  # [1, 6, 8]
        for mix, alone in zip(self.mix, self.maps):
            x = x + mix(x.squeeze(0).transpose(0, 1)).transpose(0, 1)
            x = x + alone(x).tanh()
        return x


def test_a_branch_without_an_axis_of_one_entry_has_its_rows_in_place() -> None:
    torch.manual_seed(0)
    flow = examine(Squeezing(), torch.randn(1, 6, 8)).flows[0]
    assert flow.layout.tokens == (1,) and flow.layout.samples == (0,)
    assert [branch.kind for branch in flow.branches] == [MIXES, TOKENWISE] * 3
