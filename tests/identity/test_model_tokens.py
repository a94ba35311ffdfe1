"""Token identifiability of Hugging Face models: any word as it enters the first layer, and rows that fit the table."""

import pytest
import torch

pytest.importorskip("transformers")

from tiny_models import CONFIGS, VOCABULARY

from rankfall.identity.token_identity.models import collect_states, model_token_identity
from rankfall.measure.context import Context
from rankfall.models.source import ModelSource
from rankfall.models.subject import Request, entering, subject, vocabulary
from rankfall.models.texts import Texts
from rankfall.report.conform import conform
from rankfall.streams.cuts import VARIANTS

pytestmark = pytest.mark.filterwarnings("ignore")
FEW = {"text": "zipf", "sentences": 20, "length": 9, "epochs": 1, "hidden": 4, "places": 2}
FAMILIES = ["bert", "albert", "roberta", "distilbert", "xlnet", "gpt2", "llama", "modernbert", "t5", "gptj", "bloom"]


@pytest.mark.parametrize("family", FAMILIES)
def test_any_word_is_what_the_model_makes_of_it(family: str) -> None:
    it = subject(Request(ModelSource(family, config=CONFIGS[family]), Texts("zipf", 4, 9), variants=("SAN",)), 0)
    words, states = it.batch.inputs["input_ids"], collect_states(it, VARIANTS["transformer"], [0])[0]
    assert torch.equal(entering(it, words), states)
    for place, found in zip((1, 7), vocabulary(it, [1, 7], words, states), strict=True):
        assert found.shape == (VOCABULARY, 24)
        torch.testing.assert_close(found[words[:, place]].double(), states[:, place], rtol=1e-6, atol=1e-6)


@pytest.mark.long
def test_rows_are_complete_and_fit_the_table() -> None:
    """Layers 0, 1, 3 and seeds 0, 1: naive, position, two maps of two losses, and both maps by cosine on the other layer."""
    rows = model_token_identity(Context(), model="bert", config=CONFIGS["bert"], seeds=2, layers=[1, 3], **FEW)
    variants = 2
    assert len(rows) == 2 * variants * ((3 + 1 + 2 * 2 * 2) * 3 * 2 + 2 * 2)
    table = conform("model_token_identity", rows).to_pandas()
    first = table[(table.layer == 0) & (table.candidates != "sentence")]
    assert (first.rate == 1.0).all()
    assert (table.low <= table.rate).all()
    assert (table.rate <= table.high).all()
    assert set(table[table.candidates == "vocabulary"].chance) == {1 / VOCABULARY}
    assert set(table.sentences) == {3}
