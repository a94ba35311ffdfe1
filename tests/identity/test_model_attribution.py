"""Guards attribution of real models: the model as a function of its first states, its blocks, and the rows of a small model."""

from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("transformers")

from tiny_models import CONFIGS

from rankfall.identity.jacobian import JACOBIAN, blocks_of
from rankfall.identity.model_attribution.measure import model_attribution
from rankfall.measure.context import Context
from rankfall.models.restart import layers_from
from rankfall.models.source import ModelSource
from rankfall.models.subject import Request, Subject, subject
from rankfall.models.texts import Texts
from rankfall.report import tables
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
    assert len(found) == it.anatomy.layers
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


def test_the_command_takes_as_many_tokens_of_a_text_as_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rankfall.cli import main
    from rankfall.commands import _model_identity

    part = "model_attribution"
    monkeypatch.setattr(_model_identity, "PARTS", {part: _model_identity.PARTS[part]})
    sizes = [word for item in CONFIGS["bert"].items() for word in ("--set", "{}={}".format(*item))]
    words = [
        "measure",
        "model",
        "bert",
        *sizes,
        "--study",
        "identity",
        "--text",
        "zipf",
        "--samples",
        "2",
        "--length",
        "6",
        "--seeds",
        "1",
    ]
    assert main([*words, "--tokens", "6", "--out", str(tmp_path)]) == 0
    table = tables.read(tmp_path / f"{part}.parquet", part).to_pandas()
    own = table[(table.method == "jacobian") & (table.quantity == "own share") & (table.kept_tokens == "all")]
    assert (own.tokens == 12).all()


def test_the_figure_says_what_the_table_has() -> None:
    from rankfall.identity.model_attribution.figure import model_attribution as figure

    rows = model_attribution(
        Context(), model="bert", config=CONFIGS["bert"], text="zipf", samples=2, length=8, tokens=2, ablated=1
    )
    table = conform("model_attribution", rows).to_pandas()
    picture = figure(lambda name: table)
    own = table[(table.method == "jacobian") & (table.quantity == "own share") & (table.kept_tokens == "all")]
    assert (
        f"after the last layer is {float(own[own.layer == 3]['median'].iloc[0]):.1%} (bert, init)." in picture.caption
    )
    assert picture.numbers is not None
    drawn = picture.numbers[(picture.numbers.method == "jacobian") & (picture.numbers.quantity == "own share")]
    assert drawn[drawn.kept_tokens == "all"]["median"].tolist() == pytest.approx(own["median"].tolist())
    assert len(picture.figure.axes) == 4
