"""Check attribution of real models: the model as a function of its first states, and the rows of a small model."""

import numpy as np
import pandas as pd
import pytest
import torch

pytest.importorskip("transformers")

from tiny_models import CONFIGS

from rankfall.identity.attribution.models import model_attribution
from rankfall.measure.context import Context
from rankfall.models.source import ModelSource
from rankfall.models.subject import Request, Subject, layers_from, subject
from rankfall.models.texts import Texts
from rankfall.report.conform import conform

pytestmark = pytest.mark.filterwarnings("ignore")


def on_table(family: str) -> Subject:
    source = ModelSource(family, config=CONFIGS[family])
    return subject(Request(source, Texts("zipf", 2, 6), variants=("transformer",)), 0)


@pytest.mark.parametrize("family", ["bert", "albert", "xlnet", "gpt2", "llama", "gemma2", "modernbert", "falcon"])
def test_a_model_continues_from_its_first_states(family: str) -> None:
    """Given the states of a pass it returns the states of that pass, to the bit; given others, others; one by one or as a batch."""
    it = on_table(family)
    passed: list[torch.Tensor] = []
    it.run([it.variants[0]], 1, 2, lambda layer, state: passed.append(state[0, 0].clone()))
    run = layers_from(it, 1)
    with torch.no_grad():
        found = run(passed[0])
        moved = run(torch.stack([passed[0], 1.1 * passed[0] + 0.1]))
    assert len(found) == it.layers
    for state, expected in zip(found, passed[1:], strict=True):
        assert torch.equal(state, expected)
    for pair, expected in zip(moved, passed[1:], strict=True):
        torch.testing.assert_close(pair[0], expected, rtol=1e-12, atol=1e-12)
        assert not torch.allclose(pair[1], expected)


@pytest.mark.long
def test_rows_of_a_small_model() -> None:
    options = {"config": CONFIGS["bert"], "text": "zipf", "samples": 3, "length": 8, "tokens": 3}
    own = {"method": "jacobian", "quantity": "own share", "kept_tokens": "all"}
    tables = [
        conform("model_attribution", model_attribution(Context(), model="bert", **options, **more)).to_pandas()
        for more in ({"ablated": 2}, {"directions": None})
    ]
    estimate, exact = (table[(table[list(own)] == pd.Series(own)).all(axis=1)] for table in tables)
    assert list(estimate.layer) == [1, 2, 3] and (estimate.tokens == 9).all() and (estimate.directions == 2).all()
    assert (estimate.error > 0).all() and (estimate.value < 1).all()
    assert exact.error.isna().all() and exact.directions.isna().all()
    off = np.abs(estimate.value.to_numpy() - exact.value.to_numpy())
    assert (off < 6 * estimate.error.to_numpy() + 0.01).all()
    effects = tables[1].query("method == 'ablation' and quantity == 'own share'")
    assert (effects.samples == 2).all() and effects.value.notna().all()
