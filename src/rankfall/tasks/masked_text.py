"""Predict hidden tokens in windows of real text, for masked language models.

Whole texts are held out. Their windows at the training length are the split `test`, and the same tokens in longer windows are `longer`,
so that the two differ only in length. The default text needs no network access: the documentation topics of CPython, cut by a WordPiece
vocabulary that is learned from the training texts. The content of a file that `text` names is part of the data's key. Rules drawn with
signs, `+-----+-----+`, are shortened: they are 8% of all tokens in CPython's topics, and a network learns to continue them without reading
anything else.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from rankfall import texts
from rankfall.errors import RankfallError
from rankfall.tasks._dataset import Dataset, Split

INPUTS = "tokens"
TARGETS = "hidden"
LENGTHS = ["longer"]
SEEDED = False  # seeds differ in the order of the windows and in the hidden tokens
READS = {"topics": "pydoc_data.topics"}
FILES = {"text": ["topics", "rte", "wikitext-2", "wikitext-103"]}
LIMITS = {
    "train": (1, None),
    "test": (1, None),
    "length": (1, None),
    "longer": (1, None),
    "vocabulary": (100, None),
    "every": (2, None),
    "repeats": (1, None),
}


def masked_text(
    rng: np.random.Generator,
    *,
    train: int = 1000,
    test: int = 120,
    length: int = 64,
    longer: int | None = 256,
    text: str = "topics",
    dataset: str | None = None,
    split: str = "train",
    column: str = "text",
    vocabulary: int = 8000,
    tokenizer: str | None = None,
    every: int = 8,
    repeats: int | None = 3,
) -> Dataset:
    """Return at most `train` and `test` windows of `length` tokens. Every `every`-th text is held out.

    `longer`: length of further windows of the held-out texts; null: none, for networks that run only at the trained length. `dataset`
    instead of `text`: any data set of the `datasets` library, `owner/name` or `owner/name/configuration` on the hub, or a folder; its rows
    of `split` are texts, in `column`. `vocabulary` bounds the WordPiece vocabulary; `tokenizer` names a pretrained one instead. `repeats`:
    the most times that a sign may repeat in a row; null: the text is not shortened.
    """
    source_texts = source(text, dataset, split, column)
    documents = [
        shorten_repeats(document, repeats) for document in source_texts if any(part.strip() for part in document)
    ]
    held_out = documents[every - 1 :: every]
    training = [document for index, document in enumerate(documents) if (index + 1) % every]
    cutter = (
        texts.load_tokenizer(tokenizer, "masked_text: tokenizer")
        if tokenizer
        else texts.wordpiece(training, vocabulary - 1)  # minus the symbol that hides a token
    )
    running = {
        "train": join_texts(training, cutter, train * length),
        "test": join_texts(held_out, cutter, test * length),
    }
    special = (cutter.padding, cutter.start, cutter.end, cutter.unknown)
    hides, words = len(special), sorted(set(range(cutter.size)) - set(special))
    symbols = {number: symbol for symbol, number in enumerate(special)}
    symbols |= {number: symbol for symbol, number in enumerate(words, hides + 1)}
    numbers = {name: [symbols[number] for number in tokens] for name, tokens in running.items()}
    lengths = {"train": length, "test": length} | ({} if longer is None else {"longer": longer})
    splits = {name: windows(numbers.get(name, numbers["test"]), size) for name, size in lengths.items()}
    for name, rows in splits.items():
        if not len(rows):
            raise RankfallError(
                f"masked_text: {dataset or text!r} has {len(numbers.get(name, numbers['test']))} tokens for {name}, too few for one "
                f"window of {lengths[name]}; lower {'longer' if name == 'longer' else 'length'}, or raise test"
            )
    size = hides + 1 + len(words)
    frequent = torch.bincount(splits["train"].flatten(), minlength=size)
    frequent[: hides + 1] = 0
    targets = splits["test"][splits["test"] > hides]
    return Dataset(
        {name: Split(rows, rows) for name, rows in splits.items()},
        size_in=size,
        size_out=size,
        chance=(targets == frequent.argmax()).double().mean().item(),
        special=hides + 1,
    )


def source(text: str, dataset: str | None, split: str, column: str) -> Iterator[texts.Text]:
    """Yield the texts of a named source or file, or of a data set of the `datasets` library."""
    if dataset is None:
        return texts.read(text, "masked_text: text")
    local = Path(dataset).expanduser()
    owner, *parts = dataset.split("/")
    name = (str(local),) if local.is_dir() else ("/".join([owner, *parts[:1]]), *parts[1:2])
    return texts.read_dataset(name, split, (column,), "masked_text: dataset", dataset)


def shorten_repeats(text: texts.Text, repeats: int | None) -> texts.Text:
    """Shorten runs of a sign (no letter, digit or space) to at most `repeats`."""
    if repeats is None:
        return text
    return tuple(re.sub(rf"([^\w\s])\1{{{repeats},}}", lambda run: run[1] * repeats, part) for part in text)


def join_texts(source: Iterable[texts.Text], cutter: texts.Cutter, most: int) -> list[int]:
    """Return the first `most` token numbers of the concatenated texts, each with an end token."""

    def token_numbers() -> Iterator[int]:
        for text in source:
            for part in text:
                yield from cutter.cut(part)
            yield cutter.end

    return list(islice(token_numbers(), most))


def windows(numbers: list[int], length: int) -> Tensor:
    """Cut token numbers into windows (N, T). The remainder is not used."""
    count = len(numbers) // length
    return torch.tensor(numbers[: count * length], dtype=torch.int64).view(count, length)
