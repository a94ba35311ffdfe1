"""Model types at small size: parts that AutoModel does not make, configurations that are mended, and inputs that are fitted."""

from typing import Any

import pytest
import torch
from torch import nn

from rankfall.check.library import small_example
from rankfall.errors import RankfallError
from rankfall.models.families.classes import NoModel, classes_of, maker
from rankfall.models.families.example import example_inputs
from rankfall.models.families.mended import drop_ways, leaves
from rankfall.models.families.small import small_config


def test_a_part_of_a_model_is_made_by_its_barest_class() -> None:
    from transformers import CONFIG_MAPPING

    assert [one.__name__ for one in classes_of(CONFIG_MAPPING["clap_text_model"])][:1] == ["ClapTextModel"]
    model, _, inputs = small_example("siglip_text_model", {}, 0)
    assert type(model).__name__ == "SiglipTextModel" and list(inputs) == ["input_ids"]
    with pytest.raises(NoModel, match="no model that is made of one by itself"):
        maker(CONFIG_MAPPING["layoutxlm"]())


def test_depth_is_kept_up_to_what_is_asked() -> None:
    assert [small_config("bert", depth).num_hidden_layers for depth in (2, 6, 100)] == [2, 6, 12]


def test_a_configuration_that_is_not_consistent_is_mended() -> None:
    """Zamba's attention has twice the width, which no rule of a name says."""
    config = small_config("zamba")
    with pytest.raises(RankfallError, match="runs on none of the inputs"):
        example_inputs(maker(config)(config), config)
    model, _, inputs = small_example("zamba", {}, 0)
    with torch.no_grad():
        assert model(**inputs).last_hidden_state.isfinite().all()
    assert sum(one.numel() for one in model.parameters()) < 10_000_000


def test_values_are_put_back_one_by_one_through_the_parts() -> None:
    values = {"width": 8, "text": {"model_type": "bert", "hidden_size": 32, "layers": 2}, "list": [1, 2]}
    assert list(leaves(values)) == [("width",), ("text", "hidden_size"), ("text", "layers"), ("list",)]
    assert drop_ways(values, [("text", "layers"), ("width",)]) == {
        "text": {"model_type": "bert", "hidden_size": 32}, "list": [1, 2],
    }  # fmt: skip
    assert values["text"] == {"model_type": "bert", "hidden_size": 32, "layers": 2}


class Wants(nn.Module):
    """Takes sound of 24 bands in the second axis, and needs what its signature calls optional."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.map = nn.Conv1d(width, 8, 3)

    def forward(self, input_features: Any = None, attention_mask: Any = None) -> Any:
        assert attention_mask is not None
        return self.map(input_features)


def test_features_are_fitted_and_what_is_lacking_is_added() -> None:
    class Nothing:
        pass

    inputs = example_inputs(Wants(24), Nothing())
    assert inputs["input_features"].shape[1] == 24 and sorted(inputs) == ["attention_mask", "input_features"]


def test_where_a_whole_runs_on_nothing_its_largest_part_that_runs_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    def picky(model: nn.Module, config: Any, **options: Any) -> Any:
        if type(model).__name__ in ("CLIPModel", "CLIPVisionModel"):
            raise RankfallError("runs on none of the inputs that were tried")
        return example_inputs(model, config, **options)

    monkeypatch.setattr("rankfall.check.library.example_inputs", picky)
    monkeypatch.setattr("rankfall.check.library.mended_values", lambda *how: [])
    model, config, inputs = small_example("clip", {}, 0)
    assert type(model).__name__ == "CLIPTextModel" and type(config).__name__ == "CLIPTextConfig"
    assert list(inputs) == ["input_ids"]
