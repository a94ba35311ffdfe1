"""Guards types of the library: what mixes tokens is found by trying, with the same numbers as the older way where that one measures too;
at small size parts that AutoModel does not make are made, configurations mended and inputs fitted."""

import pytest
import torch
from tiny_models import CONFIGS, PICTURES, TOKENS, VOCABULARY

from rankfall import residuals
from rankfall.check.library import small_example
from rankfall.errors import RankfallError
from rankfall.models.families.classes import NoModel, classes_of, maker
from rankfall.models.families.example import example_inputs
from rankfall.models.families.small import LAYERS, small_config
from rankfall.models.load import load
from rankfall.models.source import ModelSource
from rankfall.models.surgery import cut, find_stream
from rankfall.rank.residual import relative_residual
from rankfall.streams.cuts import VARIANTS
from rankfall.streams.examine import examine
from rankfall.streams.flow import CROSS, MIXES

# type -> causal, branches that mix tokens in 4 layers, others; a Mamba and a hybrid are in tests/check/test_said.py
MIXERS = {
    "rwkv": (True, 8, 0),  # its second branch reads the token before, too
    "recurrent_gemma": (True, 4, 4),
    "fnet": (False, 4, 4),
    "xlstm": (True, 4, 4),
    "deberta": (False, 4, 4),
}


@pytest.mark.parametrize(
    "kind", [kind if kind == "fnet" else pytest.param(kind, marks=pytest.mark.slow) for kind in MIXERS]
)
def test_mixers_without_a_softmax_are_found_by_trying(kind):
    causal, mixing, others = MIXERS[kind]
    model, _, inputs = small_example(kind, {}, 0)
    flow = examine(model, inputs).flows[0]
    mixes = [branch.kind == MIXES for branch in flow.branches]
    assert (flow.depth, flow.causal, sum(mixes), len(mixes) - sum(mixes)) == (LAYERS, causal, mixing, others)


@pytest.mark.parametrize(
    "kind", [kind if kind in ("gpt2", "gpt_neox") else pytest.param(kind, marks=pytest.mark.slow) for kind in CONFIGS]
)
def test_both_ways_to_cut_a_model_give_the_same_states(kind):
    """Weights that are not at initialisation, so that a norm left out would show."""
    loaded = load(ModelSource(kind, "init", config=CONFIGS[kind]), seed=0)
    torch.manual_seed(1)
    for parameter in loaded.model.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    pictures = torch.randn(2, 3, 32, 32).double()
    inputs = (
        {"pixel_values": pictures} if kind in PICTURES else {"input_ids": torch.randint(3, VOCABULARY, (2, TOKENS))}
    )
    result = residuals(loaded.model, inputs)
    model = loaded.model.double()
    stream, _ = find_stream(model, inputs, width=loaded.width, layers=loaded.layers)
    for name, values in result.items():
        states = cut(model, stream, inputs, [VARIANTS[name]])
        assert values == pytest.approx([relative_residual(state[0]).mean().item() for state in states], rel=1e-6)
    assert len(result) == (4 if stream.flow.parallel else 5)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["t5", "whisper"])
def test_encoders_and_decoders_of_the_library_are_two_streams(kind):
    model, _, inputs = small_example(kind, {}, 0)
    flows = {flow.name.rpartition(".")[2]: flow for flow in examine(model, inputs).flows}
    assert set(flows) == {"encoder", "decoder"}
    assert not flows["encoder"].causal and flows["decoder"].causal
    assert [branch.kind for branch in flows["decoder"].branches].count(CROSS) == LAYERS


def test_a_model_that_is_built_otherwise_is_measured_by_its_own_stream():
    changes = {"hidden_size": 16, "num_hidden_layers": 2, "vocab_size": 50, "state_size": 4}
    result = residuals("mamba", config=changes, samples=1, length=8, text="random")
    assert list(result) == ["SAN", "transformer"] and len(result["transformer"]) == 3
    assert result["transformer"].note == "measured as any module, on random inputs"
    model, _, _ = small_example("mamba", {}, 0)
    assert len(residuals(model, samples=1, length=8, text="random")["transformer"]) == LAYERS + 1


def test_a_part_of_a_model_is_made_by_its_barest_class() -> None:
    from transformers import CONFIG_MAPPING

    assert [built.__name__ for built in classes_of(CONFIG_MAPPING["clap_text_model"])][:1] == ["ClapTextModel"]
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
    assert sum(weight.numel() for weight in model.parameters()) < 10_000_000


@pytest.mark.parametrize("kind", ["sam_hq", "time_series_transformer", "qwen2_5_vl_vision", "embedding_gemma2_text"])
def test_types_that_need_rules_of_their_own_run(kind: str) -> None:
    model, _, inputs = small_example(kind, {}, 0)
    with torch.no_grad():
        output = model(**inputs)
    assert output[0].isfinite().all() and sum(weight.numel() for weight in model.parameters()) < 1_000_000


@pytest.mark.parametrize(("kind", "given"), [("vit_mae", "noise"), ("vilt", "image_embeds")])
def test_what_a_model_would_draw_in_a_pass_is_given(kind: str, given: str) -> None:
    model, _, inputs = small_example(kind, {}, 0)
    assert given in inputs
    with torch.no_grad():
        first, second = (model(**inputs).last_hidden_state for _ in range(2))
    assert torch.equal(first, second)
