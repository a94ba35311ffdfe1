"""Guards the batches: fixed length, no padding, the same tokens every time, and one clear line where a source falls short."""

import subprocess
import sys

import pytest
import torch

pytest.importorskip("transformers")


from rankfall.models.load import load
from rankfall.models.source import ModelSource
from rankfall.models.texts import Texts, Tokenizer, batch_for, documents, windows

pytestmark = pytest.mark.filterwarnings("ignore")
SMALL = {"num_hidden_layers": 1, "hidden_size": 24, "num_attention_heads": 4, "intermediate_size": 40}


@pytest.fixture(scope="module")
def bert():
    return load(ModelSource("bert-base-cased", config=SMALL))


LETTERS = Tokenizer(lambda document: list(map(ord, document)), chr, [1], [2])


def test_first_windows_of_long_documents_then_second_windows():
    """Documents shorter than a window are left out; the rest of a long one is used only when documents run out."""
    texts = ["abcdefg", "xy", "ABCDEFGH"]
    rows = windows(iter(texts), LETTERS, Texts("", samples=3, length=5))
    assert [[chr(n) for n in row[1:-1]] for row in rows.tolist()] == [list("abc"), list("ABC"), list("def")]
    assert all(row[0] == 1 and row[-1] == 2 for row in rows.tolist())


@pytest.mark.long
def test_tokens_are_the_same_in_another_process(bert):
    """The library's WordPiece trainer fails this: it breaks ties by a hash that differs between processes."""
    ids = batch_for(bert, Texts("topics", 8, 64)).inputs["input_ids"]
    code = (
        "from rankfall.models.load import load; from rankfall.models.source import ModelSource; "
        "from rankfall.models.texts import Texts, batch_for; "
        f"m = load(ModelSource('bert-base-cased', config={SMALL!r})); "
        "print(batch_for(m, Texts('topics', 8, 64)).inputs['input_ids'].flatten().tolist())"
    )
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert other.strip() == str(ids.flatten().tolist())


def test_a_text_file_is_cut_at_blank_lines(tmp_path, bert):
    path = tmp_path / "text.txt"
    path.write_text("\n\n".join("all sorts of words here " * 40 for _ in range(3)))
    assert batch_for(bert, Texts(str(path), 2, 32)).inputs["input_ids"].shape == (2, 32)
    assert len(list(documents(str(path)))) == 3


def test_drawn_tokens_follow_their_law(bert):
    """Zipf: the most frequent number about 1 / H(n) of the time; random: none stands out. Both from the seed alone."""
    zipf = batch_for(bert, Texts("zipf", 64, 128)).inputs["input_ids"]
    share = zipf.flatten().bincount().max().item() / zipf.numel()
    assert share == pytest.approx(1 / 10.85, rel=0.15)
    drawn = batch_for(bert, Texts("random", 64, 128)).inputs["input_ids"]
    assert drawn.flatten().bincount().max().item() < 10
    assert torch.equal(drawn, batch_for(bert, Texts("random", 64, 128)).inputs["input_ids"])
    assert not torch.equal(drawn, batch_for(bert, Texts("random", 64, 128, seed=1)).inputs["input_ids"])


def test_bundled_pictures_are_cut_and_scaled():
    pytest.importorskip("sklearn")
    loaded = load(ModelSource("vit", config={**SMALL, "image_size": 32, "patch_size": 8}))
    pixels = batch_for(loaded, Texts("pictures", 4)).inputs["pixel_values"]
    assert pixels.shape == (4, 3, 32, 32)
    assert -1 <= float(pixels.min()) < -0.5
    assert 0.5 < float(pixels.max()) <= 1
    assert not torch.equal(pixels[0], pixels[2])
