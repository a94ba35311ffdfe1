"""Sizes that fit together: parts that differ from their class, what single layers have, widths divided alike, and inputs in a row."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from rankfall.check.library import same, small_example
from rankfall.models.families.defaults import refused_defaults
from rankfall.models.families.divided import divide, divided_values, is_width
from rankfall.models.families.fitted import fit_inputs
from rankfall.models.families.joined import in_a_row, joined_inputs
from rankfall.models.families.mended import four_times
from rankfall.models.families.small import Shrunken, as_before, by_layer, small_config

GENERATOR = torch.Generator().manual_seed(0)


def test_a_part_keeps_what_differs_from_its_class() -> None:
    from transformers import CONFIG_MAPPING

    asked = CONFIG_MAPPING["rt_detr_v2"]().backbone_config
    assert len(asked.out_indices) != len(type(asked)().out_indices)  # or this would not show it
    assert len(small_config("rt_detr_v2").backbone_config.out_indices) == len(asked.out_indices)


def test_tuples_stay_tuples() -> None:
    assert as_before([[1, 2], [3, 4]], ((1, 2), (3, 4))) == ((1, 2), (3, 4))
    assert as_before([1, 2], [1, 2]) == [1, 2] and as_before(3, (1,)) == 3


def test_a_layer_that_is_kept_has_what_the_first_of_its_kind_has() -> None:
    plain = {"layer_types": ["near", "near", "far", "near"]}
    own = {"02": {"head_dim": 512, "num_key_value_heads": 1}}
    assert by_layer(own, Shrunken(4, 8, 2), plain) == {"01": {"head_dim": 8, "num_key_value_heads": 1}}


def test_widths_are_divided_alike_and_heads_stay() -> None:
    from transformers import CONFIG_MAPPING

    small = divided_values(CONFIG_MAPPING["reformer"], 2, 8, True)
    assert sum(small["axial_pos_embds_dim"]) == small["hidden_size"] == 32
    assert "num_attention_heads" not in divided_values(CONFIG_MAPPING["bert"], 2, 8, True)
    assert divide([[16, 64], 7, True, 8], 8) == [[16, 8], 7, True, 8]  # 2 and 1 would be too small
    assert divide([32, [64]], 8) == [4, [8]]
    assert [is_width(one) for one in ("hidden_size", "num_hidden_layers", "vocab_size", "patch_size")] == [True] + 3 * [
        False
    ]


def test_inner_widths_four_times_the_width() -> None:
    values = {"intermediate_size": 64, "other_size": 64, "part": {"model_type": "a", "intermediate_size": 64}}
    wider = {"intermediate_size": 128, "other_size": 64, "part": {"model_type": "a", "intermediate_size": 128}}
    assert four_times(values) == wider


def test_inputs_fit_what_an_error_says() -> None:
    bands = {"sound": torch.zeros(2, 64, 80)}

    def shape(error: str) -> Any:
        found = fit_inputs(bands, error, GENERATOR)
        return None if found is None else tuple(found["sound"].shape)

    assert shape("The size of tensor a (80) must match the size of tensor b (32) at non-singleton dimension 2") == (
        2,
        64,
        32,
    )
    # 80 bands come to the map as 160 numbers; it takes 64
    assert shape("mat1 and mat2 shapes cannot be multiplied (32x160 and 64x32)") == (2, 64, 32)
    assert shape("mat1 and mat2 shapes cannot be multiplied (32x7 and 64x32)") is None
    assert shape("shape '[0, 8, 32]' is invalid for input of size 64") == (8, 64, 80)
    assert fit_inputs({"one": torch.tensor(3)}, "shape '[0, 8]' is invalid", GENERATOR) is None


def test_patches_in_a_row_are_the_patches() -> None:
    parts = torch.randn(6, 3, 4, 4)
    conv = nn.Conv2d(3, 5, 4, 4)
    row = conv(in_a_row(parts))  # [1, 5, 1, 6]
    assert torch.allclose(row[0, :, 0].T, conv(parts).flatten(1), atol=1e-6)


def test_what_a_forward_names_says_how_samples_are_joined() -> None:
    config = SimpleNamespace(
        patch_size=8, in_channels=3, hidden_size=32, num_codebooks=5, vocab_size=50, num_mel_bins=20
    )

    def shapes(*names: str) -> list[dict[str, tuple[int, ...]]]:
        made = joined_inputs(dict.fromkeys(names), config, 7, GENERATOR)
        return [{name: tuple(value.shape) for name, value in one.items()} for one in made]

    assert {"pixel_values": (1, 3, 8, 256), "target_sizes": (2, 2)} in shapes("pixel_values", "target_sizes")
    assert {"input_features": (20, 128), "feature_lens": (2,)} in shapes("input_features", "feature_lens")
    assert {"input_ids": (2, 7, 5)} in shapes("input_ids")
    assert shapes("attention_mask") == []


@pytest.mark.parametrize(
    "kind", ["minicpmv4_7_vision", "qwen2_5_vl_vision", "xclip_vision_model", "embedding_gemma2_text"]
)
def test_types_that_need_one_of_these_rules_run(kind: str) -> None:
    model, _, inputs = small_example(kind, {}, 0)
    with torch.no_grad():
        found = model(**inputs)
    assert found[0].isfinite().all() and sum(one.numel() for one in model.parameters()) < 1_000_000


def test_a_small_configuration_that_fails_as_the_librarys_own_is_given_up() -> None:
    refused = refused_defaults("dbrx")
    assert "rope_theta" in refused and refused_defaults("bert") == ""
    assert same(refused, RuntimeError(f"model 'dbrx' cannot be built: {refused}"))
    assert not same(refused, RuntimeError("another"))
