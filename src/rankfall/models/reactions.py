"""Reactions of chemistry as text, from the package rxnmapper, and the tokenizer of its vocabulary."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from rankfall.errors import RankfallError
from rankfall.models.source import PACKAGED

SPECIAL = ("[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]")


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


def read_vocabulary(file: str) -> tuple[Callable[[str], tuple[list[int], list[int], list[int]]], Callable[[int], str]]:
    """Return the tokenizer of a vocabulary of strings such as those of chemistry: the longest piece first, brackets whole."""
    pieces = Path(file).read_text(encoding="utf-8").splitlines()
    numbers = {piece: number for number, piece in enumerate(pieces)}
    longest = "|".join(
        re.escape(piece) for piece in sorted(numbers, key=len, reverse=True) if piece and piece not in SPECIAL
    )
    cut = re.compile(rf"\[[^\]]*\]|{longest}|\S")

    def encode(document: str) -> tuple[list[int], list[int], list[int]]:
        tokens = [numbers.get(piece, numbers["[UNK]"]) for piece in cut.findall(document)]
        return [numbers["[CLS]"]], tokens, [numbers["[SEP]"]]

    return encode, pieces.__getitem__
