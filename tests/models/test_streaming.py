"""Guards streaming: the same numbers as with the whole model in memory, with one layer in memory at a time."""

import pytest
import torch

pytest.importorskip("transformers")

from safetensors.torch import load_file, save_file
from tiny_models import CONFIGS, tiny

from rankfall.errors import RankfallError
from rankfall.models.load import load
from rankfall.models.source import ModelSource
from rankfall.models.streaming import units
from rankfall.models.surgery import cut, find_stream
from rankfall.streams.arguments import run_model
from rankfall.streams.cuts import VARIANTS

pytestmark = pytest.mark.filterwarnings("ignore")
# among them weights that the library renames (vit), makes of several (mixtral) or ties (t5), and that are used past their module (siglip)
FROM_FILES = ["bert", "albert", "llama", "gpt2", "opt", "xlnet", "vit", "t5", "mixtral", "siglip_vision_model"]


@pytest.mark.parametrize("family", FROM_FILES)
def test_streamed_weights_give_the_same_bits(family, tmp_path):
    """From a folder of safetensors: the model whole, and layer by layer."""
    small = tiny(family)
    small.model.save_pretrained(tmp_path)
    whole = load(ModelSource(str(tmp_path), "pretrained")).model
    streamed = load(ModelSource(str(tmp_path), "pretrained", streamed=True)).model
    assert torch.equal(
        run_model(whole, small.inputs).last_hidden_state, run_model(streamed, small.inputs).last_hidden_state
    )
    stream, _ = find_stream(streamed, small.inputs, width=24, layers=3)
    variants = list(VARIANTS.values())
    theirs = cut(whole, find_stream(whole, small.inputs, width=24, layers=3)[0], small.inputs, variants)
    assert all(torch.equal(a, b) for a, b in zip(theirs, cut(streamed, stream, small.inputs, variants), strict=True))


@pytest.mark.parametrize("family", CONFIGS)
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


def save_as(folder, tensors):
    (folder / "model.safetensors").unlink()
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def test_a_tied_weight_is_read_under_either_name(tmp_path):
    small = tiny("t5")
    small.model.save_pretrained(tmp_path)
    found = load_file(tmp_path / "model.safetensors")
    whole = run_model(load(ModelSource(str(tmp_path), "pretrained")).model, small.inputs).last_hidden_state
    for name in ("shared.weight", "encoder.embed_tokens.weight"):
        kept = {
            key: value for key, value in found.items() if key not in ("shared.weight", "encoder.embed_tokens.weight")
        }
        save_as(tmp_path, {**kept, name: found["shared.weight"]})
        streamed = load(ModelSource(str(tmp_path), "pretrained", streamed=True)).model
        assert torch.equal(run_model(streamed, small.inputs).last_hidden_state, whole)


def test_a_weight_that_no_file_has_is_told(tmp_path):
    small = tiny("vit")
    small.model.save_pretrained(tmp_path)
    found = load_file(tmp_path / "model.safetensors")
    lost = next(name for name in found if "layernorm" in name)
    save_as(tmp_path, {key: value for key, value in found.items() if key != lost})
    with pytest.raises(RankfallError, match=r"cannot stream .* is not in its safetensors files"):
        run_model(load(ModelSource(str(tmp_path), "pretrained", streamed=True)).model, small.inputs)
    short = {key: value[:-1].clone() if key == lost else value for key, value in found.items()}
    save_as(tmp_path, short)
    with pytest.raises(RankfallError, match=rf"{lost} has shape \(23,\), the config says \(24,\)"):
        run_model(load(ModelSource(str(tmp_path), "pretrained", streamed=True)).model, small.inputs)
