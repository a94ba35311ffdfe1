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
