"""The layouts of all instructions but PW: what the words after code and length are. Lowerings fill the fields by name, `program/emit.py`
writes them; `WordReader` reads them, and `kernels/fields.py` for the kernels.

`x.` is an operand (buffer and offset), `scale#` the bits of a float64, `io[rows]` a table of so many offsets, any other name an integer.
"""

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from thousandfold.codes import BMM, GATHER, GEN, LIN, MASK, RED, SCATTER, WGRAD

Place = tuple[int, int]  # buffer and offset
PRODUCT = "oa[outer] ob[outer] oc[outer] ma[rows] ka[terms] nb[columns] kb[terms] mc[rows] nc[columns]"
TEXT = {
    RED: "kind out. x. rows run terms together io[rows] oo[rows] ro[terms]",
    LIN: "x. w. out. bias. biased columns terms rows run kx[terms] kw[terms] nw[columns] nc[columns] ob[columns] "
    "rx[rows] rw[rows] rc[rows]",
    WGRAD: "a. b. out. rows columns terms run ma[rows] nb[columns] mc[rows] ka[terms] kb[terms]",
    BMM: f"a. b. out. la lb outer rows columns terms lanes {PRODUCT}",
    GEN: f"a. b. out. outer rows columns terms {PRODUCT}",
    GATHER: "x. index. out. places features stride io[places] xo[places] oo[places] xd[features] od[features]",
    SCATTER: "out. index. v. zeros adds places features stride io[places] xo[places] vo[places] xd[features] vd[features]",
    MASK: "out. site threshold scale# size rows run stride element[rows] into[rows]",
}


@dataclass(frozen=True)
class Field:
    name: str
    kind: str  # ".", "#", "[" or ""
    size: str  # name of a table's size


FIELDS = {
    code: [Field(*parts) for parts in re.findall(r"(\w+)([.#\[]?)(?:(\w+)\])?", text)] for code, text in TEXT.items()
}


def read_instructions(words: np.ndarray, count: int) -> Iterator[tuple[int, np.ndarray]]:
    """Return the code and the words of each instruction of a program."""
    begin = 0
    for _ in range(count):
        code, length = (int(word) for word in words[begin : begin + 2])
        yield code, words[begin : begin + length]
        begin += length


class WordReader:
    """A reader of words in order."""

    def __init__(self, words: np.ndarray) -> None:
        self.words, self.next = words.tolist(), 0

    def word(self) -> int:
        self.next += 1
        return int(self.words[self.next - 1])

    def take(self, count: int) -> list[int]:
        self.next += count
        return self.words[self.next - count : self.next]

    def place(self) -> Place:
        return self.word(), self.word()

    def number(self) -> float:
        return float(struct.unpack("d", struct.pack("q", self.word()))[0])

    def fields(self, code: int) -> Any:
        """Return an object with the fields of an instruction, in the layout of its code."""
        values: dict[str, Any] = {}
        for field in FIELDS[code]:
            if field.kind == "[":
                values[field.name] = self.take(values[field.size])
            else:
                values[field.name] = {".": self.place, "#": self.number, "": self.word}[field.kind]()
        return SimpleNamespace(**values)
