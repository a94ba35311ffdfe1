"""Sizes that fit together: parts that differ from their class, what single layers have, widths divided alike, and inputs in a row."""

import pytest
import torch

from rankfall.check.library import small_example


@pytest.mark.parametrize(
    "kind", ["minicpmv4_7_vision", "qwen2_5_vl_vision", "xclip_vision_model", "embedding_gemma2_text"]
)
def test_types_that_need_one_of_these_rules_run(kind: str) -> None:
    model, _, inputs = small_example(kind, {}, 0)
    with torch.no_grad():
        found = model(**inputs)
    assert found[0].isfinite().all() and sum(one.numel() for one in model.parameters()) < 1_000_000
