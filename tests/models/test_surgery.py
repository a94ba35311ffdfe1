"""Guards the knife: additions are found and counted in every family, the untouched run is bit-identical, and cut layers equal
layers written out by hand."""

import pytest
import torch

pytest.importorskip("transformers")

from tiny_models import CONFIGS, LAYERS, PARALLEL, TOKENS, WIDTH, WRITTEN_OUT, layer, tiny

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
