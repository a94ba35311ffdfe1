"""English text as lists of token numbers: sources and tokenizers.

A source yields texts, each a tuple of parts (a pair of sentences has two):

    topics      CPython's documentation topics, 465 kB that come with every installation
    rte         GLUE's RTE, training split, through the `datasets` library; wikitext-2 and wikitext-103 likewise, one text per article
    a path      .tsv with columns sentence1 and sentence2 (the format of GLUE); any other file: paragraphs between blank lines

`read_dataset` reads any other data set of the `datasets` library. A cutter turns a part into token numbers: WordPiece learned from the
source itself, or a named pretrained tokenizer.
"""

import csv
import os
import re
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rankfall.errors import RankfallError

Text = tuple[str, ...]
HUB = {
    "rte": (("nyu-mll/glue", "rte"), "train", ("sentence1", "sentence2")),
    "wikitext-2": (("Salesforce/wikitext", "wikitext-2-raw-v1"), "train", ("text",)),
    "wikitext-103": (("Salesforce/wikitext", "wikitext-103-raw-v1"), "train", ("text",)),
}
PADDING, UNKNOWN, START, END = "[PAD]", "[UNK]", "[CLS]", "[SEP]"
SPECIAL = (PADDING, UNKNOWN, START, END)


@dataclass(frozen=True)
class Cutter:
    """A tokenizer to numbers below `size`; `padding`, `start`, `end` and `unknown` are the numbers of the special tokens."""

    cut: Callable[[str], list[int]]
    size: int
    padding: int
    start: int
    end: int
    unknown: int

    def whole(self, text: Text) -> list[int]:
        """Return the numbers of a whole text: start, part, end, part, end, ..."""
        return [self.start] + [number for part in text for number in (*self.cut(part), self.end)]


def read(source: str, key: str = "text") -> Iterator[Text]:
    """Return the texts of a source in its order; error messages name the source by `key`."""
    if source == "topics":
        from pydoc_data.topics import topics  # type: ignore[import-untyped]

        return ((topic,) for topic in topics.values())
    if source in HUB:
        name, split, columns = HUB[source]
        rows = read_dataset(name, split, columns, key, source)
        return articles(rows) if source.startswith("wikitext") else rows
    path = Path(source).expanduser()
    if not path.is_file():
        sources = ", ".join(("topics", *HUB))
        raise RankfallError(
            f"{key}: {source!r} is not a file that exists; allowed: {sources}, or a path to a .tsv or text file"
        )
    if path.suffix == ".tsv":
        return from_tsv(path, key)
    paragraphs = (part.strip() for part in content(path, key).split("\n\n"))
    return ((part,) for part in paragraphs if part)


def read_dataset(
    name: Sequence[str], split: str, columns: Sequence[str], key: str = "dataset", source: str | None = None
) -> Iterator[Text]:
    """Return the rows of any data set of the `datasets` library: `name` is its name on the hub, with or without a configuration, or a
    folder of text, JSON, CSV or Parquet files. Error messages use `key` and `source`."""
    source = source or "/".join(name)
    stay_offline_without_a_network()
    try:
        from datasets import load_dataset
    except ImportError:
        raise RankfallError(f"{key}: {source!r} needs the datasets library: pip install 'rankfall[hub]'") from None
    try:
        dataset = load_dataset(*name, split=split)
    except Exception as error:
        raise RankfallError(
            f"{key}: {source!r} cannot be fetched ({type(error).__name__}; no network?); use 'topics' or the path of a local file"
        ) from None
    present: list[str] | None = getattr(dataset, "column_names", None)
    missing = [column for column in columns if present and column not in present]
    if present and missing:
        raise RankfallError(f"{key}: {source!r} has no column {missing[0]!r}; it has: {', '.join(present)}")
    return (tuple(row[column] for column in columns) for row in dataset)


def articles(rows: Iterator[Text]) -> Iterator[Text]:
    """Join rows to articles. WikiText has a row per paragraph and heading; an article begins with a first-level heading, ` = Title = `."""
    article: list[str] = []
    for (row,) in rows:
        if re.fullmatch(r"\s*= [^=].*[^=] =\s*|\s*= [^=\s] =\s*", row) and article:
            yield ("".join(article),)
            article = []
        article += [row] if row.strip() or article else []
    if article:
        yield ("".join(article),)


def from_tsv(path: Path, key: str) -> Iterator[Text]:
    """Return pairs of sentences from a file in GLUE's format: a header, tabs, no quoting."""
    lines = content(path, key).splitlines()
    header = lines[0].split("\t") if lines else []
    missing = {"sentence1", "sentence2"} - set(header)
    if missing:
        raise RankfallError(
            f"{key}: {path} has no column {' or '.join(sorted(missing))} (its first line names: {', '.join(header) or 'nothing'})"
        )
    rows = list(csv.reader(lines[1:], delimiter="\t", quoting=csv.QUOTE_NONE))
    for number, row in enumerate(rows, 2):
        if len(row) != len(header):
            raise RankfallError(f"{key}: {path}, line {number}: {len(row)} columns, the first line has {len(header)}")
    first, second = header.index("sentence1"), header.index("sentence2")
    return ((row[first], row[second]) for row in rows)


def content(path: Path, key: str) -> str:
    """Return the text of a file in UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise RankfallError(f"{key}: {path} is not text in UTF-8 (byte {error.start})") from None


def wordpiece(texts: Sequence[Text], size: int) -> Cutter:
    """Learn a lower-case WordPiece vocabulary of at most `size` entries from texts. It has more if the characters alone need more.

    The trainer breaks ties between equally frequent pairs by the numbers of their pieces, and numbers inner characters ("##a") in the order
    of a hash table, which differs from run to run. Passing all of them as special tokens fixes the numbers and with them the result. The
    tokenizer is then built from the vocabulary alone, without special tokens.
    """
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    normalizer = normalizers.BertNormalizer(lowercase=True)
    learner = Tokenizer(models.WordPiece(unk_token=UNKNOWN))
    learner.normalizer, learner.pre_tokenizer = normalizer, pre_tokenizers.BertPreTokenizer()
    parts = [part for text in texts for part in text]
    characters = sorted(
        {character for part in parts for character in normalizer.normalize_str(part) if not character.isspace()}
    )
    inner = [f"##{character}" for character in characters]
    trainer = trainers.WordPieceTrainer(
        vocab_size=max(size, len(SPECIAL) + 2 * len(characters)),
        special_tokens=[*SPECIAL, *inner],
        initial_alphabet=characters,
        limit_alphabet=len(characters),
        show_progress=False,
    )
    learner.train_from_iterator(parts, trainer)
    pieces = sorted(set(learner.get_vocab()) - set(SPECIAL))
    numbers = {piece: number for number, piece in enumerate((*SPECIAL, *pieces))}
    tokenizer = Tokenizer(models.WordPiece(vocab=numbers, unk_token=UNKNOWN))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, pre_tokenizers.BertPreTokenizer()

    def cut(part: str) -> list[int]:
        numbers: list[int] = tokenizer.encode(part, add_special_tokens=False).ids
        return numbers

    return Cutter(cut, len(numbers), *(numbers[token] for token in (PADDING, START, END, UNKNOWN)))


def load_tokenizer(name: str, key: str = "tokenizer") -> Cutter:
    """Load a pretrained tokenizer by name, with its whole vocabulary."""
    stay_offline_without_a_network()
    try:
        from transformers import AutoTokenizer
    except ImportError:
        raise RankfallError(f"{key}: {name!r} needs the transformers library: pip install 'rankfall[models]'") from None
    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(name, trust_remote_code=False)
    except Exception as error:
        raise RankfallError(
            f"{key}: {name!r} cannot be loaded ({type(error).__name__}; no network?); leave the key out to learn one from the text"
        ) from None
    ends = {"padding": tokenizer.pad_token_id, "start": tokenizer.cls_token_id, "end": tokenizer.sep_token_id}
    ends["unknown"] = tokenizer.unk_token_id
    missing = [role for role, number in ends.items() if number is None]
    if missing:
        raise RankfallError(f"{key}: {name!r} has no token for {', '.join(missing)}; use a tokenizer of the BERT kind")

    def cut(part: str) -> list[int]:
        numbers: list[int] = tokenizer(part, add_special_tokens=False, verbose=False)["input_ids"]
        return numbers

    return Cutter(cut, len(tokenizer), **ends)


def stay_offline_without_a_network() -> None:
    """Set HF_HUB_OFFLINE if the hub's name does not resolve, so that its libraries use their caches instead of retrying for 30 seconds."""
    try:
        socket.getaddrinfo(urlsplit(os.environ.get("HF_ENDPOINT", "https://huggingface.co")).hostname, 443)
    except OSError:
        if not any(name.lower() in ("https_proxy", "all_proxy") for name in os.environ):
            os.environ.setdefault("HF_HUB_OFFLINE", "1")
