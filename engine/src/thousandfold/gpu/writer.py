"""The writer of a kernel's text."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from thousandfold.layouts import Place


@dataclass
class Writer:
    """The parts of a kernel. `threads`: threads per block. `shared`: numbers of shared memory per block."""

    threads: int
    shared: int
    bytes: int  # bytes of a number
    arena: int  # numbers of the arena
    scratch: int = 0  # numbers behind the arena
    tables: list[int] = field(default_factory=list)
    table_at: dict[tuple[int, ...], int] = field(default_factory=dict)
    pointwise: dict[str, str] = field(default_factory=dict)  # text of a function -> its name
    calls: dict[str, int] = field(default_factory=dict)  # text of a call without its places -> its number
    records: list[list[int]] = field(default_factory=list)  # per instruction: number of its call, places

    def table(self, offsets: Iterable[int]) -> str:
        """Return the C++ type that computes the offsets of elements."""
        table = tuple(int(offset) for offset in offsets)
        stride, size = table[1] - table[0] if len(table) > 1 else 0, 1
        while size < len(table) and table[size] == table[0] + size * stride:
            size += 1
        if size == len(table) and table[0] == 0:
            return f"Run<{stride}>"
        outer = table[::size]
        if 1 < size < len(table) and all(
            offset == outer[i // size] + i % size * stride for i, offset in enumerate(table)
        ):
            return f"Split<{size}, {stride}, {self.table(outer)}>"
        if table not in self.table_at:
            self.table_at[table] = len(self.tables)
            self.tables += table
        return f"Table<{self.table_at[table]}>"

    def call(self, name: str, template: Sequence[object], places: Sequence[Place], *others: str) -> None:
        """Add an instruction. `others`: arguments after the places."""
        parameters = f"<{', '.join(str(value) for value in template)}>" if template else ""
        arguments = ", ".join([*(f"place({k})" for k in range(len(places))), *others])
        number = self.calls.setdefault(f"{name}{parameters}({arguments});", len(self.calls))
        self.records.append([number, *(word for place in places for word in place)])


def literal(number: float) -> str:
    if math.isnan(number):
        return "not_a_number()"
    if math.isinf(number):
        return "infinite()" if number > 0 else "-infinite()"
    return f"real({number!r})"
