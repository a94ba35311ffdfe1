"""Text for masked language models: whole texts are held out, the two lengths show the same tokens, nothing depends on the seed."""

from pathlib import Path

import pytest
import torch

from rankfall.random_streams import stream
from rankfall.tasks.masked_text import masked_text

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]


@pytest.fixture
def text(tmp_path: Path) -> str:
    """Twenty texts; the fourth, eighth and so on say other words than the others."""
    rng = stream(0, "words")
    lines = [" ".join(rng.choice(WORDS if n % 4 else ["omega", "alpha"], 60)) for n in range(1, 21)]
    (tmp_path / "text.txt").write_text("\n\n".join(lines))
    return str(tmp_path / "text.txt")


def test_every_fourth_text_is_held_out_and_chance_is_that_of_the_most_frequent_word(text: str) -> None:
    data = masked_text(stream(0, "data"), text=text, length=10, longer=30, vocabulary=200, every=4)
    train, test, longer = (data.splits[name].inputs for name in ("train", "test", "longer"))
    assert (train.shape[1], test.shape[1], longer.shape[1]) == (10, 10, 30)
    assert len(torch.unique(train)) == len(WORDS) + 1  # and the end of a text
    assert torch.equal(test.flatten()[: longer.numel()], longer.flatten())
    assert all(split.targets is split.inputs for split in data.splits.values())
    assert data.special == 5 and int(train.max()) < data.size_in == data.size_out <= 200
    assert not (train == data.special - 1).any()  # what hides a token stands nowhere
    assert set((train.flatten() == 2).nonzero().flatten().diff().tolist()) == {61}
    counts = torch.bincount(train.flatten())
    counts[: data.special] = 0
    asked = test[test >= data.special]
    assert data.chance == pytest.approx(float((asked == counts.argmax()).double().mean()))


def test_the_seed_makes_no_difference(text: str) -> None:
    first, other = (masked_text(stream(s, "data"), text=text, length=10, longer=30, vocabulary=200) for s in (0, 1))
    assert all(torch.equal(first.splits[name].inputs, other.splits[name].inputs) for name in first.splits)
