"""Check the memorization task: labels that cannot be guessed, evaluation on training samples, padding that asks for nothing."""

import pytest
import torch

from rankfall import texts
from rankfall.errors import RankfallError
from rankfall.random_streams import stream
from rankfall.tasks.memorization import cut_or_pad, memorization, number_symbols, windows

SMALL = {"train": 60, "test": 16, "length": 24, "vocabulary": 1000}


def made(seed: int = 0, **options):
    return memorization(stream(seed, "data"), **(SMALL | options))


@pytest.fixture
def pairs(tmp_path):
    path = tmp_path / "pairs.tsv"
    rows = [f"{n}\tthe first {'word ' * (n % 5)}number {n}\tthe second {n}\tentailment" for n in range(40)]
    path.write_text("index\tsentence1\tsentence2\tlabel\n" + "\n".join(rows) + "\n")
    return str(path)


def test_is_measured_on_its_first_training_samples(pairs):
    data = made(text=pairs, padded=True, train=40, length=20)
    assert torch.equal(data.test.inputs, data.train.inputs[:16])
    assert torch.equal(data.test.targets, data.train.targets[:16])
    with pytest.raises(RankfallError, match="test is 41, but it is measured on the training samples and train is 40"):
        made(text=pairs, padded=True, train=40, length=20, test=41)


def test_real_text_in_windows():
    data = made()
    assert data.train.inputs.shape == (60, 24) and data.train.inputs.max() < data.size_in <= 1000
    source = list(texts.read("topics"))
    cutter = texts.wordpiece(source, 1000)
    found = [tuple(sample) for sample in windows(source, cutter, 24)]
    symbols = number_symbols(found, cutter.padding)
    known = {tuple(symbols[number] for number in sample) for sample in found}
    assert {tuple(row) for row in data.train.inputs.tolist()} <= known and len(symbols) == data.size_in
    assert len({tuple(row) for row in data.train.inputs.tolist()}) == 60  # none twice, though the text repeats itself
    unknown = sum(sample.count(1) for sample in found) / (24 * len(found))
    assert unknown < 0.001  # the vocabulary was learned from this very text


def test_windows_are_consecutive_and_full():
    cutter = texts.Cutter(lambda part: [int(word) for word in part.split()], 50, 0, 2, 3, 1)
    source = [("10 11 12 13 14",), ("20 21",), ("30 31", "32 33")]
    assert list(windows(source, cutter, 2)) == [[10, 11], [12, 13], [20, 21], [30, 31], [32, 33]]
    assert list(cut_or_pad(source, cutter, 6)) == [
        [2, 10, 11, 12, 13, 14],
        [2, 20, 21, 3, 0, 0],
        [2, 30, 31, 3, 32, 33],
    ]


def test_padding_asks_for_no_label(pairs):
    data = made(text=pairs, padded=True, train=40, length=20)
    padding = data.train.inputs == 0
    assert padding.any() and torch.equal(padding, data.train.targets == -1)
    assert (data.train.inputs[:, 0] == 1).all()  # [CLS]: nothing is unknown here, so that number is not used
    assert ((data.train.inputs == 2).sum(1) == 2).all()  # both sentences end in [SEP]
