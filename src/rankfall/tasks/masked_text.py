"""Real text for masked language models: windows of tokens, some of which the objective hides and asks for.

Whole texts are held out. Their windows at the length of training are the split `test`; the same tokens in longer windows are
`longer`, so that the two differ in length and in nothing else. The default text needs no network access: the documentation topics of
CPython, cut by a WordPiece vocabulary that is learned from the texts to train on. What is in a file that `text` names is part of the
data's key. Rules drawn with signs, `+-----+-----+`, are shortened: in CPython's topics they were 8% of all tokens, which a network
learns to continue without reading anything.
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
    """At most `train` and `test` windows of `length` tokens; every `every`-th text is held out, and shown at `longer` tokens too; null: at
    the trained length only, for networks that cannot run at another.

    `dataset` instead of `text`: any data set of the `datasets` library, `owner/name` or `owner/name/configuration` on the hub, or a
    folder; its rows of `split` are texts, in `column`. `vocabulary` bounds the WordPiece vocabulary; `tokenizer` names a pretrained
    one instead. `repeats`: how often in a row the same sign may stand, where the text has it more often; null: the text as it is.
    """
    found = source(text, dataset, split, column)
    whole = [shorten_repeats(one, repeats) for one in found if any(part.strip() for part in one)]
    held = whole[every - 1 :: every]
    kept = [one for index, one in enumerate(whole) if (index + 1) % every]
    cutter = (
        texts.load_tokenizer(tokenizer, "masked_text: tokenizer")
        if tokenizer
        else texts.wordpiece(kept, vocabulary - 1)  # and the symbol that hides
    )
    running = {"train": join_texts(kept, cutter, train * length), "test": join_texts(held, cutter, test * length)}
    special = (cutter.padding, cutter.start, cutter.end, cutter.unknown)
    hides, words = len(special), sorted(set(range(cutter.size)) - set(special))
    symbols = {number: symbol for symbol, number in enumerate(special)}
    symbols |= {number: symbol for symbol, number in enumerate(words, hides + 1)}
    numbers = {name: [symbols[number] for number in found] for name, found in running.items()}
    lengths = {"train": length, "test": length} | ({} if longer is None else {"longer": longer})
    splits = {name: windows(numbers.get(name, numbers["test"]), size) for name, size in lengths.items()}
    for name, made in splits.items():
        if not len(made):
            raise RankfallError(
                f"masked_text: {dataset or text!r} has {len(numbers.get(name, numbers['test']))} tokens for {name}, too few for one "
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


def source(text: str, dataset: str | None, split: str, column: str) -> Iterator[texts.Text]:
    """The texts of a named source or file, or of a data set of the `datasets` library."""
    if dataset is None:
        return texts.read(text, "masked_text: text")
    local = Path(dataset).expanduser()
    owner, *rest = dataset.split("/")
    name = (str(local),) if local.is_dir() else ("/".join([owner, *rest[:1]]), *rest[1:2])
    return texts.read_dataset(name, split, (column,), "masked_text: dataset", dataset)


def shorten_repeats(text: texts.Text, repeats: int | None) -> texts.Text:
    """No sign, neither letter nor digit nor space, more than `repeats` times in a row."""
    if repeats is None:
        return text
    return tuple(re.sub(rf"([^\w\s])\1{{{repeats},}}", lambda run: run[1] * repeats, part) for part in text)


def join_texts(source: Iterable[texts.Text], cutter: texts.Cutter, most: int) -> list[int]:
    """The first tokens of the texts one after the other, each with an end."""

    def numbers() -> Iterator[int]:
        for text in source:
            for part in text:
                yield from cutter.cut(part)
            yield cutter.end

    return list(islice(numbers(), most))


def windows(numbers: list[int], length: int) -> Tensor:
    """(N, T); what is left at the end is not used."""
    count = len(numbers) // length
    return torch.tensor(numbers[: count * length], dtype=torch.int64).view(count, length)
