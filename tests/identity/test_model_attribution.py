"""Guards attribution of real models: the model as a function of its first states, its blocks, and the rows of a small model."""

import numpy as np
import pytest
import torch

pytest.importorskip("transformers")

from tiny_models import CONFIGS

from rankfall.identity.attribution.models import model_attribution
from rankfall.identity.jacobian import JACOBIAN, blocks_of
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


@pytest.mark.parametrize("family", ["bert", "llama"])
def test_blocks_agree_with_differences(family: str) -> None:
    it = on_table(family)
    states: list[torch.Tensor] = []
    it.run([it.variants[0]], 0, 1, lambda layer, state: states.append(state[0, 0].clone()))
    run, x, step = layers_from(it, 0), states[0], 1e-4
    tokens = torch.tensor([4])
    found = blocks_of(run, x, tokens, None, np.random.default_rng(0))[JACOBIAN][0, :, 0]  # (L, T)
    moved = step * torch.eye(x.numel(), dtype=x.dtype).view(-1, *x.shape)
    with torch.no_grad():
        up, down = run(x + moved), run(x - moved)
    for layer, (more, less) in enumerate(zip(up, down, strict=True)):
        columns = (more - less)[:, 4].view(*x.shape, -1) / (2 * step)  # (T, D, D)
        expected = columns.square().sum((1, 2)).sqrt()
        torch.testing.assert_close(found[layer].sqrt(), expected, rtol=1e-6, atol=1e-6 * float(expected.max()))


@pytest.mark.long
def test_rows_of_a_small_model() -> None:
    rows = model_attribution(
        Context(), model="bert", config=CONFIGS["bert"], text="zipf", samples=3, length=8, tokens=3, ablated=2
    )
    table = conform("model_attribution", rows).to_pandas()
    own = table[(table.method == "jacobian") & (table.quantity == "own share") & (table.kept_tokens == "all")]
    assert list(own.layer) == [1, 2, 3] and (own.tokens == 9).all() and (own.directions == 2).all()
    assert (own.error > 0).all() and (own.value < 1).all()
    exact = model_attribution(
        Context(), model="bert", config=CONFIGS["bert"], text="zipf", samples=3, length=8, tokens=3, directions=None
    )
    table = conform("model_attribution", exact).to_pandas()
    true = table[(table.method == "jacobian") & (table.quantity == "own share") & (table.kept_tokens == "all")]
    assert true.error.isna().all() and true.directions.isna().all()
    assert (np.abs(own.value.to_numpy() - true.value.to_numpy()) < 6 * own.error.to_numpy() + 0.01).all()
    effects = table[(table.method == "ablation") & (table.quantity == "own share")]
    assert (effects.samples == 2).all() and effects.value.notna().all()
