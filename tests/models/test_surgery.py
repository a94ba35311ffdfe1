"""Guards the knife: additions are found and counted in every family, the untouched run is bit-identical, and cut layers equal layers
written out by hand. Streaming gives the same numbers as the whole model in memory, with one layer in memory at a time."""

import pytest
import torch

pytest.importorskip("transformers")

from safetensors.torch import load_file, save_file
from tiny_models import CONFIGS, LAYERS, PARALLEL, TOKENS, WIDTH, WRITTEN_OUT, layer, tiny

from rankfall.errors import RankfallError
from rankfall.models.load import load
from rankfall.models.source import ModelSource
from rankfall.models.streaming import units
from rankfall.models.surgery import cut, find_stream, verify
from rankfall.streams.arguments import Wide, run_model
from rankfall.streams.cuts import VARIANTS
from rankfall.streams.flow import MIXES, TOKENWISE

pytestmark = pytest.mark.filterwarnings("ignore")


def dissected(family):
    subject = tiny(family)
    return subject, find_stream(subject.model, subject.inputs, width=WIDTH, layers=LAYERS)[0]


@pytest.mark.parametrize("family", CONFIGS)
def test_two_additions_a_layer_and_an_untouched_run_is_bit_identical(family):
    subject, stream = dissected(family)
    assert subject.sizes == (LAYERS, WIDTH, 4)  # in one vocabulary, whatever the configuration calls them
    kinds = [
        (branch.layer, kind)
        for branch in stream.flow.branches
        for kind in (branch.kind, *(TOKENWISE for part in branch.parts))
    ]
    assert sorted(kinds) == sorted((number, kind) for number in range(1, LAYERS + 1) for kind in (MIXES, TOKENWISE))
    assert stream.flow.parallel == (family in PARALLEL)
    verify(subject.model, stream, subject.inputs)


@pytest.mark.parametrize("family", WRITTEN_OUT)
def test_a_cut_layer_equals_the_layer_written_out(family):
    """Every layer of every variant, from the state that entered it, in float64 to rounding."""
    subject, stream = dissected(family)
    subject.model.double()
    inputs = {key: value.double() if value.is_floating_point() else value for key, value in subject.inputs.items()}
    subject.inputs = inputs
    for variant in VARIANTS.values():
        states = [state[0] for state in cut(subject.model, stream, inputs, [variant])]
        assert len(states) == LAYERS + 1
        options = {"attention_skip": variant.attention_skip, "mlp": variant.mlp, "mlp_skip": variant.mlp_skip}
        with torch.no_grad(), Wide():
            for number in range(LAYERS):
                by_hand = layer(subject, number).run(states[number], **options)
                # Positions and T5's buckets are float32 constants inside the models; everything else is float64.
                torch.testing.assert_close(states[number + 1], by_hand, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("family", ["bert", "xlnet", "opt", "gptj"])
def test_variants_in_one_pass_equal_variants_alone(family):
    """Layouts (B, T, D), (T, B, D) and (B*T, D), and blocks in parallel: each variant has its own part of the batch."""
    subject, stream = dissected(family)
    variants = [variant for variant in VARIANTS.values() if not (stream.flow.parallel and not variant.mlp_skip)]
    together = cut(subject.model, stream, subject.inputs, variants)
    for index, variant in enumerate(variants):
        alone = cut(subject.model, stream, subject.inputs, [variant])
        for number in range(LAYERS + 1):
            torch.testing.assert_close(together[number][index], alone[number][0], rtol=1e-5, atol=1e-5)


def test_cutting_leaves_no_trace():
    """After surgery the model gives the same bits as before, and no hook is left behind."""
    subject, stream = dissected("bert")
    before = run_model(subject.model, subject.inputs).last_hidden_state
    cut(subject.model, stream, subject.inputs, [VARIANTS["SAN"]])
    assert torch.equal(run_model(subject.model, subject.inputs).last_hidden_state, before)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in subject.model.modules())


def test_float64_is_not_narrowed_inside():
    """Llama computes softmax and norms in float32 unless stopped. Identical tokens then differ by float32 noise; here by float64's."""
    subject, stream = dissected("llama")
    subject.model.double()
    inputs = {"input_ids": torch.full((2, TOKENS), 9)}
    state = cut(subject.model, stream, inputs, [VARIANTS["transformer"]])[-1][0]
    spread = (state - state[:, :1]).abs().amax() / state.abs().amax()
    assert state.dtype == torch.float64
    assert float(spread) < 1e-13


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
    streams = [find_stream(model, small.inputs, width=WIDTH, layers=LAYERS)[0] for model in (whole, streamed)]
    first, second = (cut(*pair, small.inputs, list(VARIANTS.values())) for pair in zip((whole, streamed), streams))
    assert all(map(torch.equal, first, second)) and len(first) == len(second)


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
    result = load_file(tmp_path / "model.safetensors")
    whole = run_model(load(ModelSource(str(tmp_path), "pretrained")).model, small.inputs).last_hidden_state
    for name in ("shared.weight", "encoder.embed_tokens.weight"):
        kept = {
            key: value for key, value in result.items() if key not in ("shared.weight", "encoder.embed_tokens.weight")
        }
        save_as(tmp_path, {**kept, name: result["shared.weight"]})
        streamed = load(ModelSource(str(tmp_path), "pretrained", streamed=True)).model
        assert torch.equal(run_model(streamed, small.inputs).last_hidden_state, whole)


def test_a_weight_that_no_file_has_is_told(tmp_path):
    small = tiny("vit")
    small.model.save_pretrained(tmp_path)
    result = load_file(tmp_path / "model.safetensors")
    lost = next(name for name in result if "layernorm" in name)
    save_as(tmp_path, {key: value for key, value in result.items() if key != lost})
    with pytest.raises(RankfallError, match=r"cannot stream .* is not in its safetensors files"):
        run_model(load(ModelSource(str(tmp_path), "pretrained", streamed=True)).model, small.inputs)
    short = {key: value[:-1].clone() if key == lost else value for key, value in result.items()}
    save_as(tmp_path, short)
    with pytest.raises(RankfallError, match=rf"{lost} has shape \(23,\), the config says \(24,\)"):
        run_model(load(ModelSource(str(tmp_path), "pretrained", streamed=True)).model, small.inputs)
