"""Declarations of tables: name, meaning of a row, and columns with type, unit and meaning, which are checked when tables are written and
read.

Most tables describe cells. They begin with the same columns, `CELL_COLUMNS`: labels, status and the complete specification of the cell, so
that a figure needs no second table. A quantity declares its table by the function `columns` in `shown.py` of its folder:

    def columns() -> Table:
        return declare_table("drift", "each cell and layer", "layer int 0..depth: 0 is the embedding", key="layer")

A user's quantity may leave it out. Then its table has the columns of the rows that its measure gives (`conform.declaration`).
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from textwrap import dedent
from types import NoneType
from typing import Any, get_args, get_type_hints

from rankfall import components
from rankfall.design import UNREAD, Architecture, Training, meanings
from rankfall.errors import RankfallError

TYPES = ("text", "int", "float", "bool")
WORDS = {int: "int", float: "float", bool: "bool"}


Bound = float | str | None  # a number, the name of another column of the row, or no bound


@dataclass(frozen=True)
class Column:
    """A column of a table. `provenance` marks values that may differ between equal results: times, machines, stacks. `bounds`: the least
    and the largest allowed number."""

    name: str
    type: str  # one of TYPES
    meaning: str
    unit: str = ""
    nullable: bool = False  # null means "does not apply"
    nan: bool = False  # NaN means "not a number", for example a diverged loss
    provenance: bool = False
    bounds: tuple[Bound, Bound] = (None, None)


@dataclass(frozen=True)
class Table:
    """The declaration of a table. A table of cells (`cells`) begins with CELL_COLUMNS, and its key begins with the cell's key."""

    name: str
    row: str  # what a row is for, to be read after "one row for": `each cell and layer`
    own: tuple[Column, ...]  # tables of cells have CELL_COLUMNS before these
    key: tuple[str, ...] = ()  # the table's own columns that distinguish rows (of a cell)
    cells: bool = True
    inferred: bool = False  # its own columns are those of its rows

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns]
        invalid = [name for name in names if names.count(name) > 1] + [name for name in self.key if name not in names]
        invalid += [column.name for column in self.columns if column.type not in TYPES]
        invalid += [
            bound for column in self.columns for bound in column.bounds if isinstance(bound, str) and bound not in names
        ]
        if invalid:
            raise RankfallError(
                f"table {self.name}: column {invalid[0]} is declared twice, is not declared, or has a type other than {TYPES}"
            )

    @property
    def columns(self) -> tuple[Column, ...]:
        """All columns in order."""
        return CELL_COLUMNS + self.own if self.cells else self.own

    @property
    def identity(self) -> tuple[str, ...]:
        """The columns in which no two rows have the same values."""
        return (("key",) if self.cells else ()) + self.key

    @property
    def order(self) -> tuple[str, ...]:
        """The columns by which rows are sorted."""
        return (("task", "architecture", "training", "depth", "seed", "key") if self.cells else ()) + self.key

    @property
    def version(self) -> str:
        """A digest of the names, types and order of the columns, but not of their descriptions."""
        text = json.dumps([(column.name, column.type) for column in self.columns])
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def digest(self) -> str:
        """A digest of all that rows of the table depend on. Descriptions are left out, so that editing one makes no row stale."""
        texts = ("row", "meaning", "unit")

        def without_texts(items: list[tuple[str, Any]]) -> dict[str, Any]:
            return {name: value for name, value in items if name not in texts}

        text = json.dumps(asdict(self, dict_factory=without_texts))
        return hashlib.sha256(text.encode()).hexdigest()[:12]


# One line of `declare_columns`: name, type, `?` if null is allowed, and optionally unit, bounds and marks.
LINE = re.compile(r"(\w+) (\w+)(\?)?(?: \[(.+?)\])?(?: ([-\w.]*?)\.\.([-\w.]*))?((?: nan| provenance)*): (.+)")


def declare_columns(text: str) -> tuple[Column, ...]:
    """Return the columns of a text with a line for each, `loss float? [nats] 0.. nan: mean over the samples; null: not measured`.

    In this order: name, type, `?` if null is allowed, unit in brackets, bounds (a number or a column on each side of two dots), and the
    marks `nan` and `provenance`. A line that is indented by more than the first one continues the meaning above it.
    """
    joined = re.sub(r"\n +", " ", dedent(text))
    return tuple(_declare_column(line.strip()) for line in joined.splitlines() if line.strip())


def _declare_column(line: str) -> Column:
    """Return the column of one line."""
    match = LINE.fullmatch(line)
    if match is None:
        raise RankfallError(
            f"{line!r} declares no column\nWrite it as `name type: meaning`, such as `loss float? [nats]: ...`"
        )
    name, kind, null, unit, low, high, marks, meaning = match.groups(default="")
    bounds = _read_bound(low), _read_bound(high)
    return Column(name, kind, meaning, unit, bool(null), " nan" in marks, " provenance" in marks, bounds)


def _read_bound(text: str) -> Bound:
    """Return a bound: a number, the name of a column, or None for an empty text."""
    try:
        return int(text) if text.lstrip("-").isdigit() else float(text)
    except ValueError:
        return text or None


def declare_table(name: str, row: str, *columns: str | Iterable[Column], key: str = "", cells: bool = True) -> Table:
    """Return a table whose columns are given as texts (`declare_columns`) or as columns. `key`: names of columns, in order."""
    parts = [declare_columns(part) if isinstance(part, str) else tuple(part) for part in columns]
    return Table(name, row, sum(parts, ()), tuple(key.split()), cells)


def schema(name: str) -> Table:
    """Return the declaration of a table. If a user's quantity has no `columns`, its own columns are those of its rows."""
    declared = components.describe_columns(name)
    if declared is None:
        needs = components.facts_of("measure", name).get("NEEDS", "cells")
        return Table(name, f"what the measure {name} gives", (), cells=needs == "cells", inferred=True)
    if declared.table is not None:
        return declared.table
    table: Table = components.load("table", name)()
    return table


def finds_headlines(name: str) -> bool:
    """Return whether a table has a column for the headline of each quantity."""
    declared = components.describe_columns(name)
    return declared is not None and "headline" in declared.facts.get("FINDS", ())


def design_columns(design: type) -> Iterator[Column]:
    """Yield a column for each field of a type of `design.py`."""
    unread = {name for fields in UNREAD.values() for name in fields}
    for name, hint in get_type_hints(design).items():
        if name == "name":
            continue
        chosen = [item for item in get_args(hint) if item is not NoneType] if NoneType in get_args(hint) else [hint]
        kind, means = WORDS.get(chosen[0], "text"), meanings(design)[name]
        if design is Architecture:  # cells have resolved values in place of null and `auto`
            means = means.partition("; ")[0] + ("; null: nothing reads it" if name in unread else "")
        yield Column(name, kind, means, nullable="null: " in means)


CELL_COLUMNS = (
    *declare_columns(
        """
        key text: content hash of the cell: its spec, the code of its arithmetic, its data
        task text: the task's name in the config
        architecture text: the architecture's name in the config
        training text: the training's name in the config
        seed int: names every random stream of the cell: data, initialisation, order, dropout
        status text: done, diverged (frozen at the step in `reason`), failed, or missing (not computed yet)
        reason text: why the cell is not done, or why it stopped early; empty otherwise
        task_component text: the component that makes the data
        """
    ),
    *design_columns(Architecture),
    *design_columns(Training),
    *declare_columns(
        """
        device text? provenance: where the cell was trained; null: not recorded
        engine text? provenance: what computed its training steps: plain (autograd), captured (the same, recorded on a GPU and replayed),
            machine (traced), machine_gpu (the same on a GPU); null: not recorded
        stack text? provenance: which cells were trained together; null: not recorded
        host text? provenance: the machine that trained the cell; null: not recorded
        processor text? provenance: the processor that computed the row's numbers: its name, family and model, the vectors that PyTorch
            used; behind `; measured on` the one that measured the cell where another one trained it; null: not recorded
        torch text? provenance: torch's version when it did; null: not recorded
        """
    ),
)

# What tables of Hugging Face models begin with.
MODEL_COLUMNS = declare_columns(
    """
    model text: hub name, folder, or model type of the library
    model_type text: the library's name of the family
    revision text: commit or digest of the weights; `init` for weights drawn from the seed
    phase text: init or pretrained
    definition text: of the variants: clean, or published (what the published code really keeps)
    seed int?: names the initialisation; null for pretrained weights
    text text: where the tokens come from
    tokenizer text: own: the model's; trained: learned from the text; none: numbers drawn, or pictures
    length int [tokens]: tokens of a sample
    layers int: layers of the model
    heads int: attention heads of a layer
    width int: dimension of a token's vector
    dtype text: number format of the forward pass; metrics are always computed in float64
    """
)
