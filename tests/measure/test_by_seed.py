"""A model at initialisation is measured with every seed, pretrained weights once."""

from typing import Any

import pytest

from rankfall.measure.context import Context
from rankfall.measure.models import by_seed
from rankfall.models.source import ModelSource
from rankfall.models.subject import Request
from rankfall.models.texts import Texts


@pytest.mark.parametrize(("phase", "seeds"), [("init", [0, 1, 2]), ("pretrained", [0])])
def test_pretrained_weights_have_no_seed(phase: Any, seeds: list[int]) -> None:
    request = Request(ModelSource("bert", phase=phase), Texts("zipf", 2, 4))
    rows = by_seed(Context(), request, 3, lambda asked, chosen: [{"seed": chosen, "asked": asked is request}])
    assert rows == [{"seed": [seed], "asked": True} for seed in seeds]
    assert by_seed(Context(), None, 3, lambda asked, chosen: [{}]) == []
