"""Real text for masked language models: windows of tokens, some of which the objective hides and asks for.

Whole texts are held out. Their windows at the length of training are the split `test`; the same tokens in longer windows are
`longer`, so that the two differ in length and in nothing else. The default text needs no network access: the documentation topics of
CPython, cut by a WordPiece vocabulary that is learned from the texts to train on. What is in a file that `text` names is part of the
data's key.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from rankfall import texts
from rankfall.errors import RankfallError
from rankfall.tasks._dataset import Dataset, Split

INPUTS = "tokens"
TARGETS = "hidden"
LENGTHS = ["longer"]
SEEDED = False  # seeds differ in the order of the windows and in what is hidden
READS = {"topics": "pydoc_data.topics"}
FILES = {"text": ["topics", "rte", "wikitext-2", "wikitext-103"]}
LIMITS = {
    "train": (1, None),
    "test": (1, None),
    "length": (1, None),
    "longer": (1, None),
    "vocabulary": (100, None),
    "every": (2, None),
}


def masked_text(
    rng: np.random.Generator,
    *,
    train: int = 1000,
    test: int = 120,
    length: int = 64,
    longer: int = 256,
    text: str = "topics",
    vocabulary: int = 8000,
    tokenizer: str | None = None,
    every: int = 8,
) -> Dataset:
    """At most `train` and `test` windows of `length` tokens; every `every`-th text is held out, and shown at `longer` tokens too.

    `vocabulary` bounds the WordPiece vocabulary; `tokenizer` names a pretrained one instead.
    """
    source = list(texts.read(text, "masked_text: text"))
    held = source[every - 1 :: every]
    kept = [one for index, one in enumerate(source) if (index + 1) % every]
    cutter = (
        texts.pretrained(tokenizer, "masked_text: tokenizer")
        if tokenizer
        else texts.wordpiece(kept, vocabulary - 1)  # and the symbol that hides
    )
    running = {"train": joined(kept, cutter)[: train * length], "test": joined(held, cutter)[: test * length]}
    special = (cutter.padding, cutter.start, cutter.end, cutter.unknown)
    hides, words = len(special), sorted(set(range(cutter.size)) - set(special))
    symbols = {number: symbol for symbol, number in enumerate(special)}
    symbols |= {number: symbol for symbol, number in enumerate(words, hides + 1)}
    numbers = {name: [symbols[number] for number in found] for name, found in running.items()}
    lengths = {"train": length, "test": length, "longer": longer}
    splits = {name: windows(numbers.get(name, numbers["test"]), size) for name, size in lengths.items()}
    for name, made in splits.items():
        if not len(made):
            raise RankfallError(
                f"masked_text: {text!r} has {len(numbers.get(name, numbers['test']))} tokens for {name}, too few for one "
                f"window of {lengths[name]}; lower {'longer' if name == 'longer' else 'length'}, or raise test"
            )
    size = hides + 1 + len(words)
    frequent = torch.bincount(splits["train"].flatten(), minlength=size)
    frequent[: hides + 1] = 0
    asked = splits["test"][splits["test"] > hides]
    return Dataset(
        {name: Split(made, made) for name, made in splits.items()},
        size_in=size,
        size_out=size,
        chance=(asked == frequent.argmax()).double().mean().item(),
        special=hides + 1,
    )


def joined(source: Sequence[texts.Text], cutter: texts.Cutter) -> list[int]:
    """The texts one after the other, each with an end."""

    def numbers() -> Iterator[int]:
        for text in source:
            for part in text:
                yield from cutter.cut(part)
            yield cutter.end

    return list(numbers())


def windows(numbers: list[int], length: int) -> Tensor:
    """(N, T); what is left at the end is not used."""
    count = len(numbers) // length
    return torch.tensor(numbers[: count * length], dtype=torch.int64).view(count, length)
