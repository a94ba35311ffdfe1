"""Memorise random labels on the tokens of real text (Dong et al. 2021, section 4).

Every token of every sample has a random label, so a network can only learn the samples themselves. Accuracy is therefore measured on the
first training samples, not on fresh ones. A network without mixing of tokens reaches a high accuracy too, since rare tokens are known by
themselves.

Published: RTE's sentence pairs, [CLS] one [SEP] two [SEP], cut or padded to 128 tokens of bert-base-uncased, 500 samples in batches of 8,
evaluated on the first 11 batches; the network has no positions. The default text needs no network access: windows without padding from the
documentation topics of CPython. The content of a file that `text` names is part of the data's key.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from rankfall import texts
from rankfall.errors import RankfallError
from rankfall.tasks._dataset import Dataset, Reads, Split, majority_chance

INPUTS = "tokens"
TARGETS = "classes"
OVERLAP = "what is learned is the training samples, so accuracy is measured on them"
READS = {"topics": "pydoc_data.topics"}
FILES = {"text": ["topics", "rte", "wikitext-2", "wikitext-103"]}
LIMITS = {
    "train": (1, None),
    "test": (1, None),
    "length": (1, None),
    "labels": (1, None),
    "vocabulary": (1, None),
}


def memorization(
    rng: np.random.Generator,
    *,
    train: int = 500,
    test: int = 88,
    length: int = 128,
    labels: int = 2,
    text: str = "topics",
    padded: bool = False,
    vocabulary: int = 8000,
    tokenizer: str | None = None,
) -> Dataset:
    """Draw samples of the text, and their labels, from the seed.

    `padded`: a sample is a whole text with special tokens, cut or padded to the length; padding has no label. Otherwise samples are the
    full windows of each text. `vocabulary` bounds the WordPiece vocabulary that is learned from the text; `tokenizer` names a pretrained
    one instead.
    """
    if test > train:
        raise RankfallError(
            f"memorization: test is {test}, but it is measured on the training samples and train is {train}"
        )
    source = list(texts.read(text, "memorization: text"))
    cutter = (
        texts.load_tokenizer(tokenizer, "memorization: tokenizer") if tokenizer else texts.wordpiece(source, vocabulary)
    )
    rows = cut_or_pad(source, cutter, length) if padded else windows(source, cutter, length)
    samples = list(dict.fromkeys(map(tuple, rows)))  # the same text with two sets of labels could not be memorised
    if len(samples) < train:
        raise RankfallError(
            f"memorization: {text!r} gives {len(samples)} different samples of {length} tokens, train asks for {train}; "
            f"lower train or length{'' if padded else ', or set padded: true'}"
        )
    chosen = rng.choice(len(samples), train, replace=False)
    symbols = number_symbols(samples, cutter.padding)
    inputs = torch.tensor([[symbols[number] for number in samples[index]] for index in chosen])  # (N, T)
    targets = torch.from_numpy(rng.integers(labels, size=tuple(inputs.shape)))
    if padded:
        targets = targets.masked_fill(inputs == symbols[cutter.padding], -1)
    return Dataset(
        {"train": Split(inputs, targets), "test": Split(inputs[:test], targets[:test])},
        size_in=len(symbols),
        size_out=labels,
        chance=majority_chance(targets, targets[:test], labels),
    )


def number_symbols(samples: list[tuple[int, ...]], padding: int) -> dict[int, int]:
    """Number the symbols of the text without gaps, padding first.

    Vectors of unused symbols would not affect results, but Adam would carry them through every step: most of a pretrained tokenizer's
    30,000.
    """
    used = {number for sample in samples for number in sample} - {padding}
    return {number: symbol for symbol, number in enumerate((padding, *sorted(used)))}


def cut_or_pad(source: list[texts.Text], cutter: texts.Cutter, length: int) -> Iterator[list[int]]:
    """Yield each text from its beginning, cut or padded to the length."""
    for text in source:
        numbers = cutter.whole(text)[:length]
        yield numbers + [cutter.padding] * (length - len(numbers))


def windows(source: list[texts.Text], cutter: texts.Cutter, length: int) -> Iterator[list[int]]:
    """Yield each text in consecutive windows. The remainder is not used."""
    for text in source:
        numbers = [number for part in text for number in cutter.cut(part)]
        for start in range(0, len(numbers) - length + 1, length):
            yield numbers[start : start + length]


def attainable(reads: Reads, *, length: int, **_: Any) -> float | str:
    """Return 1 if every token reads all others, since no two samples are equal; otherwise the best accuracy is not known."""
    if all(len(read) == length for read in reads(length)):
        return 1.0
    return "it depends on how many texts begin alike"
