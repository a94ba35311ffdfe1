"""Model types at small size: parts that AutoModel does not make, configurations that are mended, and inputs that are fitted."""

import pytest
import torch

from rankfall.check.library import small_example
from rankfall.errors import RankfallError
from rankfall.models.families.classes import NoModel, classes_of, maker
from rankfall.models.families.example import example_inputs
from rankfall.models.families.small import small_config


def test_a_part_of_a_model_is_made_by_its_barest_class() -> None:
    from transformers import CONFIG_MAPPING

    assert [one.__name__ for one in classes_of(CONFIG_MAPPING["clap_text_model"])][:1] == ["ClapTextModel"]
    model, _, inputs = small_example("siglip_text_model", {}, 0)
    assert type(model).__name__ == "SiglipTextModel" and list(inputs) == ["input_ids"]
    with pytest.raises(NoModel, match="no model that is made of one by itself"):
        maker(CONFIG_MAPPING["layoutxlm"]())


def test_a_configuration_that_is_not_consistent_is_mended() -> None:
    """Zamba's attention has twice the width, which no rule of a name says."""
    config = small_config("zamba")
    with pytest.raises(RankfallError, match="runs on none of the inputs"):
        example_inputs(maker(config)(config), config)
    model, _, inputs = small_example("zamba", {}, 0)
    with torch.no_grad():
        assert model(**inputs).last_hidden_state.isfinite().all()
    assert sum(one.numel() for one in model.parameters()) < 10_000_000


@pytest.mark.parametrize("kind", ["sam_hq", "time_series_transformer", "qwen2_5_vl_vision", "embedding_gemma2_text"])
def test_types_that_need_rules_of_their_own_run(kind: str) -> None:
    model, _, inputs = small_example(kind, {}, 0)
    with torch.no_grad():
        found = model(**inputs)
    assert found[0].isfinite().all() and sum(one.numel() for one in model.parameters()) < 1_000_000


@pytest.mark.parametrize(("kind", "given"), [("vit_mae", "noise"), ("vilt", "image_embeds")])
def test_what_a_model_would_draw_in_a_pass_is_given(kind: str, given: str) -> None:
    model, _, inputs = small_example(kind, {}, 0)
    assert given in inputs
    with torch.no_grad():
        one, other = model(**inputs), model(**inputs)
    assert torch.equal(one.last_hidden_state, other.last_hidden_state)
