"""Guards streaming: the same numbers as with the whole model in memory, with one layer in memory at a time."""

import pytest
import torch

pytest.importorskip("transformers")

from tiny_models import CONFIGS, tiny

from rankfall.errors import RankfallError
from rankfall.models.dissect import study
from rankfall.models.forward import run_model
from rankfall.models.load import load
from rankfall.models.source import ModelSource
from rankfall.models.streaming import units
from rankfall.models.subject import Request
from rankfall.models.surgery import cut
from rankfall.models.texts import Texts
from rankfall.models.variants import VARIANTS
from rankfall.rank.model_residuals.profile import profile

pytestmark = pytest.mark.filterwarnings("ignore")
STREAMED = [
    family for family in CONFIGS if family not in ("t5", "mixtral", "siglip_vision_model")
]  # tied; or weights used past their module


@pytest.mark.parametrize("family", ["bert", "albert", "llama", "gpt2", "opt", "xlnet"])
def test_streamed_weights_give_the_same_bits(family, tmp_path):
    """From a folder of safetensors: the model whole, and layer by layer."""
    small = tiny(family)
    small.model.save_pretrained(tmp_path)
    whole = load(ModelSource(str(tmp_path), "pretrained")).model
    streamed = load(ModelSource(str(tmp_path), "pretrained", streamed=True)).model
    assert torch.equal(
        run_model(whole, small.inputs).last_hidden_state, run_model(streamed, small.inputs).last_hidden_state
    )
    anatomy = study(streamed, small.inputs, width=24, layers=3)
    variants = list(VARIANTS.values())
    theirs = cut(whole, study(whole, small.inputs, width=24, layers=3), small.inputs, variants)
    assert all(torch.equal(a, b) for a, b in zip(theirs, cut(streamed, anatomy, small.inputs, variants), strict=True))


@pytest.mark.parametrize("family", STREAMED)
def test_drawn_weights_are_the_same_at_every_fetch(family):
    """Each pass fetches every layer anew; two passes agree bit by bit, another seed does not."""
    inputs = tiny(family).inputs
    source = ModelSource(family, config=CONFIGS[family], streamed=True)
    first = load(source, seed=1)
    once, again = (run_model(first.model, inputs).last_hidden_state for _ in range(2))
    assert torch.equal(once, again)
    assert bool(once.isfinite().all())
    assert not torch.equal(once, run_model(load(source, seed=2).model, inputs).last_hidden_state)


def test_never_more_than_one_layer_in_memory():
    """Counted while it runs, at every linear map: weights with storage belong to one layer."""
    loaded = load(ModelSource("llama", config=CONFIGS["llama"], streamed=True))
    layers = dict(units(loaded.model))
    held = []

    def look(module, inputs):
        held.append(sum(any(p.device.type != "meta" for p in layer.parameters()) for layer in layers.values()))

    for module in loaded.model.modules():
        if isinstance(module, torch.nn.Linear):
            module.register_forward_pre_hook(look)
    run_model(loaded.model, tiny("llama").inputs)
    assert len(layers) == 3
    assert set(held) == {1}


def test_drawn_layers_have_the_family_s_own_scales():
    """GPT-2 scales its projections onto the stream by 1 / sqrt(2 L); a module-by-module draw has to do the same."""
    config = {"vocab_size": 500, "n_embd": 96, "n_layer": 3, "n_head": 4}
    loaded = load(ModelSource("gpt2", config=config, streamed=True))
    stds = {}

    def look(module, inputs):
        stds[module] = float(module.c_proj.weight.std())

    loaded.model.h[1].mlp.register_forward_pre_hook(look)
    run_model(loaded.model, {"input_ids": torch.randint(0, 500, (1, 5))})
    assert next(iter(stds.values())) == pytest.approx(0.02 / 6**0.5, rel=0.03)


def test_profile_of_a_streamed_model_equals_that_of_the_whole(tmp_path):
    tiny("bert").model.save_pretrained(tmp_path)
    rows = {}
    for streamed in (False, True):
        request = Request(
            ModelSource(str(tmp_path), "pretrained", streamed=streamed), Texts("zipf", 3, 12), dtype="float64"
        )
        found = profile(request, [0], norms=("composite",), best_samples=0, spectrum_samples=0)
        rows[streamed] = {(r["variant"], r["layer"], r["sample"]): r["value"] for r in found}
    assert rows[False].keys() == rows[True].keys()
    assert len(rows[True]) == 5 * 4 * 3
    for key, value in rows[False].items():
        assert rows[True][key] == pytest.approx(value, rel=1e-9, abs=1e-15)


def test_checkpoints_under_other_names_are_refused(tmp_path):
    """The library renames ViT's weights when it loads them; streaming reads names as they are and says which one is not there."""
    tiny("vit").model.save_pretrained(tmp_path)
    loaded = load(ModelSource(str(tmp_path), "pretrained", streamed=True))
    with pytest.raises(RankfallError, match="is not in its safetensors files"):
        run_model(loaded.model, tiny("vit").inputs)


def test_tied_weights_are_refused():
    with pytest.raises(RankfallError, match="share weight"):
        load(ModelSource("t5", config=CONFIGS["t5"], streamed=True))
