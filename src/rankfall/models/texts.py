"""Batches of real text at a fixed length without padding, and of real pictures, as inputs of a model.

Protocol of the rank-collapse paper: take the documents in order, leave out those shorter than `length` tokens, cut the others to their
first `length` tokens, special tokens included, and use the first `samples`. If a source has too few documents, the next windows of
`length` tokens of the same documents follow, in order.

Sources: "topics" (CPython's documentation topics, in every installation), "wiki_bio" (the paper's; through `datasets`), a local
text file (paragraphs are documents), "reactions" (of chemistry, in the package rxnmapper), and for comparison "zipf" and "random", which
draw token numbers and need no tokenizer.
Vision models get pictures: those bundled with scikit-learn ("pictures"), or a folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, distribution
from itertools import islice
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor

from rankfall.errors import RankfallError, describe_error
from rankfall.models.load import TOKENIZER_FILES, Loaded
from rankfall.models.source import PACKAGED, hub_reachable
from rankfall.random_streams import stream

DRAWN = ("zipf", "random")  # sources without text and tokenizer
SPECIAL = ("[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]")


@dataclass(frozen=True)
class Texts:
    """The inputs to use. `source`: as above; "topics" stands for the model's default. A vision model needs "pictures" or a folder."""

    source: str = "topics"
    samples: int = 32
    length: int = 128
    seed: int = 0


@dataclass(frozen=True)
class Batch:
    """Inputs of a model, with their source and tokenizer for the table."""

    inputs: dict[str, Tensor]
    source: str
    tokenizer: str
    pieces: dict[int, str] = field(default_factory=dict)  # token number -> its text, if known
    special: frozenset[int] = frozenset()  # numbers of the tokens that begin and end a document

    def part(self, start: int, stop: int) -> dict[str, Tensor]:
        return {name: value[start:stop] for name, value in self.inputs.items()}

    @property
    def samples(self) -> int:
        return int(next(iter(self.inputs.values())).shape[0])


def batch_for(loaded: Loaded, texts: Texts) -> Batch:
    """Return the batch on which a model is measured."""
    texts = replace(texts, source=loaded.text) if texts.source == "topics" else texts
    if loaded.images:
        return Batch({"pixel_values": pictures(texts, loaded.config)}, texts.source, "none")
    if loaded.positions is not None and texts.length > loaded.positions:
        raise RankfallError(
            f"length is {texts.length} but the model has {loaded.positions} positions; make it {loaded.positions} or less"
        )
    vocabulary = int(loaded.config.get_text_config().vocab_size)
    if texts.source in DRAWN:
        return Batch({"input_ids": _draw_tokens(texts, vocabulary)}, texts.source, "none")
    if loaded.tokenizer_from is not None:
        read = _read_vocabulary if loaded.tokenizer_from.endswith("vocab.txt") else _load_tokenizer
        tokenizer, name = read(loaded.tokenizer_from), "own"
    else:
        padding = getattr(loaded.config.get_text_config(), "pad_token_id", None)
        tokenizer, name = _trained_tokenizer(texts.source, vocabulary, padding), "trained"
    ids = windows(documents(texts.source), tokenizer, texts)
    if int(ids.max()) >= vocabulary:
        raise RankfallError(
            f"the tokenizer gives token {int(ids.max())}, but the model's vocabulary has {vocabulary}: they belong to different models"
        )
    pieces = {number: tokenizer.spell(number) for number in ids.unique().tolist()}
    return Batch({"input_ids": ids}, texts.source, name, pieces, frozenset((*tokenizer.before, *tokenizer.after)))


def documents(source: str) -> Iterator[str]:
    """Yield the documents of a source, in its order."""
    if source == "topics":
        from pydoc_data.topics import topics  # type: ignore[import-untyped]

        yield from topics.values()
    elif source == "reactions":
        yield from reactions()
    elif source == "wiki_bio":
        yield from _wiki_bio()
    else:
        path = Path(source).expanduser()
        if not path.is_file():
            raise RankfallError(f"text {source!r} is neither a file nor one of topics, wiki_bio, {', '.join(DRAWN)}")
        try:
            content = path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise RankfallError(f"text {source!r} is not text in UTF-8 (byte {error.start})") from error
        yield from (part.strip() for part in content.split("\n\n") if part.strip())


def _wiki_bio() -> Iterator[str]:
    """Yield the published source: field target_text of the test split, in order. The repository's loading script is not run."""
    try:
        from datasets import load_dataset
    except ImportError as error:
        raise RankfallError("text 'wiki_bio' needs the datasets library: pip install 'rankfall[hub]'") from error
    try:
        if not hub_reachable():
            raise OSError("the hub's name does not resolve")
        rows = load_dataset("michaelauli/wiki_bio", revision="refs/convert/parquet", split="test", streaming=True)
        for row in rows:
            yield row["target_text"]
    except Exception as error:
        line = "text 'wiki_bio' cannot be fetched (no network?); use 'topics' or the path of a text file"
        raise RankfallError(line) from error


def reactions() -> Iterator[str]:
    """Yield the reactions in the description and the tests of rxnmapper, each from every precursor on: their order has no meaning."""
    try:
        files = distribution("rxnmapper").files or []
    except PackageNotFoundError:
        raise RankfallError(
            f"text 'reactions' is in rxnmapper, which is not installed: {PACKAGED['rxnmapper'].install}"
        ) from None
    content = "".join(file.read_text() for file in files if file.name == "METADATA" or file.match("tests/*.py"))
    content = re.sub(r'"\s*\n\s*"', "", content)  # strings that continue in the next line
    unique = dict.fromkeys(
        reaction for reaction in re.findall(r"[^\s\"'`,|]{3,}>>[^\s\"'`,|]{3,}", content) if ":" not in reaction
    )
    parts = [(reaction.partition(">>")[0].split("."), reaction.partition(">>")[2]) for reaction in unique]
    for turn in range(max((len(precursors) for precursors, _ in parts), default=0)):
        for precursors, product in parts:
            if turn < len(precursors):
                yield f"{'.'.join(precursors[turn:] + precursors[:turn])}>>{product}"


@dataclass(frozen=True)
class Tokenizer:
    """The token numbers of a document, the piece of text of a number, and the special tokens before and behind every document."""

    encode: Callable[[str], list[int]]
    spell: Callable[[int], str]
    before: list[int]
    after: list[int]


def windows(texts: Iterator[str], tokenizer: Tokenizer, request: Texts) -> Tensor:
    """Return token numbers (samples, length): the first windows of all long documents, then their second windows, and so on."""
    before, after = tokenizer.before, tokenizer.after
    room = request.length - len(before) - len(after)
    if room < 1:
        raise RankfallError(f"length {request.length} leaves no room beside {len(before) + len(after)} special tokens")
    rounds: dict[int, list[list[int]]] = {}
    for document in texts:
        tokens = tokenizer.encode(document)
        for number in range(len(tokens) // room):
            rounds.setdefault(number, []).append([*before, *tokens[number * room : (number + 1) * room], *after])
        if len(rounds.get(0, ())) >= request.samples:
            break
    rows = list(islice((row for number in sorted(rounds) for row in rounds[number]), request.samples))
    if len(rows) < request.samples:
        raise RankfallError(
            f"text {request.source!r} gives {len(rows)} windows of {request.length} tokens; {request.samples} were asked for"
        )
    return torch.tensor(rows, dtype=torch.long)


def _read_vocabulary(file: str) -> Tokenizer:
    """Return the tokenizer of a vocabulary of strings such as those of chemistry: the longest piece first, brackets whole."""
    pieces = Path(file).read_text(encoding="utf-8").splitlines()
    numbers = {piece: number for number, piece in enumerate(pieces)}
    longest = "|".join(
        re.escape(piece) for piece in sorted(numbers, key=len, reverse=True) if piece and piece not in SPECIAL
    )
    cut = re.compile(rf"\[[^\]]*\]|{longest}|\S")

    def encode(document: str) -> list[int]:
        return [numbers.get(piece, numbers["[UNK]"]) for piece in cut.findall(document)]

    return Tokenizer(encode, pieces.__getitem__, [numbers["[CLS]"]], [numbers["[SEP]"]])


def _load_tokenizer(place: str) -> Tokenizer:
    """Return the tokenizer of the model. Its special tokens at the ends are read off an example."""
    from transformers import AutoTokenizer

    # Without files the library silently makes an empty tokenizer.
    path = Path(place)
    options: dict[str, Any] = {"trust_remote_code": False, "local_files_only": path.exists()}
    if path.is_dir() and not any((path / name).exists() for name in TOKENIZER_FILES):
        raise RankfallError(f"model folder {place} has no tokenizer ({', '.join(TOKENIZER_FILES)}); or use text 'zipf'")
    if path.suffix == ".gguf":
        place, options["gguf_file"] = str(path.parent), path.name
    try:
        tokenizer = AutoTokenizer.from_pretrained(place, **options)
    except Exception as error:
        raise RankfallError(f"model {place!r} has no tokenizer that can be loaded ({describe_error(error)})") from error
    mark = tokenizer("a")["input_ids"]
    bare = tokenizer("a", add_special_tokens=False)["input_ids"]
    start = next((i for i in range(len(mark)) if mark[i : i + len(bare)] == bare), 0)

    return Tokenizer(
        lambda document: tokenizer(document, add_special_tokens=False, verbose=False)["input_ids"],
        lambda number: str(tokenizer.convert_ids_to_tokens(number)),
        before=mark[:start],
        after=mark[start + len(bare) :],
    )


def _trained_tokenizer(source: str, vocabulary: int, padding: int | None) -> Tokenizer:
    """Train a tokenizer on the source by pair merging, with token numbers inside the model's vocabulary.

    At initialisation embeddings are independent draws, so the number of a piece does not matter, only which pieces are equal. The padding
    number is left out, since its embedding is zero in many models. (The library's WordPiece trainer breaks ties in an order that differs
    between runs. Merging without continuation marks gives the same pieces every time.)
    """
    import tokenizers

    free = [number for number in range(vocabulary) if number != padding]
    size = min(8000, len(free))
    if size < 300:
        raise RankfallError(f"a vocabulary of {vocabulary} is too small for text; use text 'zipf' or 'random'")
    trained = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="[UNK]"))
    trained.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=False)
    trained.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=size, special_tokens=list(SPECIAL[:3]), show_progress=False)
    # Parallel training breaks ties by the order in which threads finish.
    with patch.dict(os.environ, TOKENIZERS_PARALLELISM="false"):
        trained.train_from_iterator(documents(source), trainer)
    numbers = {piece: free[index] for index, piece in enumerate(sorted(trained.get_vocab()))}
    written = {number: piece for piece, number in numbers.items()}

    def encode(document: str) -> list[int]:
        return [numbers[piece] for piece in trained.encode(document).tokens]

    return Tokenizer(encode, written.__getitem__, [numbers["[CLS]"]], [numbers["[SEP]"]])


def _draw_tokens(texts: Texts, vocabulary: int) -> Tensor:
    """Draw token numbers without language: all equally likely, or the r-th with a frequency proportional to 1/r."""
    rng = stream(texts.seed, "texts", texts.source)
    low = min(5, vocabulary - 1)  # above the usual special tokens
    count = vocabulary - low
    weights = 1.0 / np.arange(1, count + 1) if texts.source == "zipf" else np.ones(count)
    drawn = rng.choice(count, size=(texts.samples, texts.length), p=weights / weights.sum())
    return torch.from_numpy(drawn + low)


def pictures(texts: Texts, config: Any) -> Tensor:
    """Return square crops of the pictures in turn, (samples, channels, side, side) in [-1, 1]. The seed draws positions and sizes."""
    side = config.image_size if isinstance(config.image_size, int) else config.image_size[0]
    images = _bundled_pictures() if texts.source == "pictures" else _read_pictures(Path(texts.source).expanduser())
    rng = stream(texts.seed, "pictures")
    rows = []
    for number in range(texts.samples):
        image = images[number % len(images)]
        edge = int(min(image.shape[:2]) * rng.uniform(0.5, 1.0))
        top = int(rng.integers(0, image.shape[0] - edge + 1))
        left = int(rng.integers(0, image.shape[1] - edge + 1))
        square = torch.from_numpy(image[top : top + edge, left : left + edge].copy()).permute(2, 0, 1)[None].float()
        rows.append(torch.nn.functional.interpolate(square, (side, side), mode="bilinear", antialias=True)[0])
    batch = torch.stack(rows) / 127.5 - 1
    return batch if config.num_channels == 3 else batch.mean(1, keepdim=True).expand(-1, config.num_channels, -1, -1)


def _bundled_pictures() -> list[np.ndarray]:
    """Return the pictures of scikit-learn, each (height, width, 3)."""
    try:
        from sklearn.datasets import load_sample_images
    except ImportError as error:
        raise RankfallError(
            "pictures need scikit-learn or a folder: pip install scikit-learn, or texts.source: FOLDER"
        ) from error
    return list(load_sample_images().images)


def _read_pictures(path: Path) -> list[np.ndarray]:
    """Return the pictures in a folder by name, each (height, width, 3)."""
    if not path.is_dir():
        raise RankfallError(f"text {str(path)!r} is not a folder of pictures; use 'pictures' for the bundled ones")
    from PIL import Image

    files = sorted(file for file in path.iterdir() if file.suffix.lower() in (".png", ".jpg", ".jpeg", ".bmp", ".webp"))
    if not files:
        raise RankfallError(f"text {str(path)!r} holds no png, jpg, bmp or webp")
    return [np.asarray(Image.open(file).convert("RGB")) for file in files]
