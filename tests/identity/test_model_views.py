"""Guards the view of a model's attention: its parts give what the family's own code computes, in every family."""

import pytest
import torch

pytest.importorskip("transformers")

from tiny_models import CONFIGS, PICTURES, WRITTEN_OUT, Tiny, layer

from rankfall.errors import RankfallError
from rankfall.identity.model_views import model_views
from rankfall.models.source import ModelSource
from rankfall.models.subject import Request, Subject, subject
from rankfall.models.texts import Texts
from rankfall.streams.arguments import Wide
from rankfall.streams.cuts import VARIANTS

pytestmark = pytest.mark.filterwarnings("ignore")
OWN_BRANCH = ("gemma2", "gpt_neox", "gptj", "falcon")  # a norm or the MLP comes between attention and the stream
POST = ("bert", "roberta", "albert", "distilbert", "xlnet")


def on_table(family: str, length: int = 7) -> Subject:
    """Float64, with weights and biases moved so far that none is trivial."""
    text = "topics" if family in PICTURES else "zipf"
    it = subject(
        Request(ModelSource(family, config=CONFIGS[family]), Texts(text, 2, length), variants=("transformer",)), 0
    )
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for value in it.loaded.model.parameters():
            value.add_(0.2 * torch.randn(value.shape, generator=generator, dtype=value.dtype))
    return it


def states_of(it: Subject) -> dict[int, torch.Tensor]:
    states: dict[int, torch.Tensor] = {}
    it.run([VARIANTS["transformer"]], 0, 2, states.__setitem__)
    return {number: state[0] for number, state in states.items()}


@pytest.mark.parametrize("family", CONFIGS)
def test_every_family_has_views(family: str) -> None:
    """`model_views` compares the sum over heads with what the model computed in each layer, and refuses what differs."""
    it = on_table(family)
    found = list(model_views(it, 0, 2))
    assert [view.layer for view in found] == [1, 2, 3]
    causal = family not in ("bert", "albert", "roberta", "distilbert", "modernbert", "xlnet", "t5", *PICTURES)
    for view in found:
        assert view.weights.dtype == view.values.dtype == torch.float64
        assert bool(view.allowed.all()) != causal and bool(view.allowed.tril().equal(view.allowed)) == causal
        sums = view.weights.sum(-1)
        assert (sums < 1 - 1e-6).any() if family == "gpt_oss" else torch.allclose(sums, torch.ones_like(sums))
        assert isinstance(view.join, str) == (family in OWN_BRANCH)
        assert isinstance(view.join, str) or (view.join.norm is not None) == (family in POST)


@pytest.mark.parametrize("family", [family for family in WRITTEN_OUT if family not in PICTURES])
def test_the_parts_give_the_layer_written_out(family: str) -> None:
    it = on_table(family)
    small = Tiny(family, it.loaded.model, it.inputs(0, 2))
    states = states_of(it)
    for view in model_views(it, 0, 2):
        by_hand = layer(small, view.layer - 1)
        state = states[view.layer - 1]
        with torch.no_grad(), Wide():
            read = by_hand.norm1(state) if by_hand.pre else state
            torch.testing.assert_close(view.inputs, read, rtol=1e-10, atol=1e-10)
            expected = by_hand.attend(read)
            torch.testing.assert_close(view.attend(), expected, rtol=1e-9, atol=1e-9)
            assert not isinstance(view.join, str)
            after = state + expected
            after = after if by_hand.pre else by_hand.norm1(after)
            torch.testing.assert_close(view.join(expected), after, rtol=1e-9, atol=1e-9)


def test_a_gate_on_the_heads_is_refused() -> None:
    """What is not weights times values times a linear map has no null space of T, and no number is given for it."""
    it = on_table("llama")
    attention = it.loaded.model.layers[1].self_attn
    attention.o_proj.register_forward_pre_hook(lambda module, given: given[0] * given[0].sigmoid())
    with pytest.raises(RankfallError, match="linear map of its output"):
        list(model_views(it, 0, 2))
