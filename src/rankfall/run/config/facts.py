"""The names in capitals that Rankfall reads in a component's file, with the form of each. Any other name in capitals is the author's."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import Gt, MinLen
from pydantic import StrictBool, StrictFloat, StrictInt, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from rankfall import components
from rankfall.design import UNREAD, Architecture, parts
from rankfall.errors import RankfallError
from rankfall.quantity_files import LISTS
from rankfall.run.config.problems import translate

# Types with values from tables, which type checkers cannot know.
_LIST: Any = Literal[tuple(LISTS)]
_KIND: Any = Literal[tuple(components.KINDS)]
_PART: Any = Literal[tuple(sorted(set(parts(Architecture).values())))]  # kinds of components that make up a network
_UNREAD: Any = Literal[tuple(field for fields in UNREAD.values() for field in fields)]
Names = list[str]
SomeNames = Annotated[list[str], MinLen(1)]
Bound = StrictInt | StrictFloat | None
Reasons = list[tuple[dict[str, Any], str]]  # a filter of cells, and a reason


class Facts(TypedDict, total=False):
    """What a component's file declares."""

    LIMITS: dict[str, tuple[Bound, Bound]]  # option -> lowest and highest value
    REFUSES: Reasons  # it cannot be combined with cells that match a filter
    REQUIRES: Reasons  # it can only be combined with cells that match every filter
    NEEDS: Literal["cells", "nothing", "tables"]  # of a measure
    DATA: SomeNames  # files
    READS: Annotated[dict[str, str], MinLen(1)]  # word -> module
    FILES: dict[str, Names]  # option that is a path -> words that stand for no file
    TABLES: SomeNames
    FINDS: Annotated[list[_LIST], MinLen(1)]  # declarations of quantities
    PROVIDES: Names  # parts that measures can use, such as weights
    BREAKS: Names  # parts that are incomplete in a network with this component, such as values
    USES: list[str | SomeNames]  # parts that a measure needs; an inner list holds alternatives
    OFFERS: (
        Names  # points where an attention lets a position or normaliser act: queries, products, scores, values, lengths
    )
    TOUCHES: Names  # points where it acts: states, or a point that an attention offers
    IGNORES: list[_UNREAD]  # fields of an architecture
    SEQUENCES: Literal["equal tokens", "different sequences"]
    SEEDED: StrictBool
    OVERLAP: Annotated[str, MinLen(1)]  # why test samples may be training samples
    TRACED: StrictBool
    TOKENWISE: StrictBool
    SYMMETRIC: StrictBool
    LENGTH_VARIES: StrictBool
    COST: dict[Literal["seconds", "megabytes"], Annotated[StrictInt | StrictFloat, Gt(0)]]  # of a cell
    TOKENS: Annotated[StrictInt, Gt(0)]  # of a sequence, if no option holds the length
    LENGTHS: Names  # options that hold lengths
    ROWS: Literal["one", "zero", "constant", "free", "normaliser"]
    EQUAL_ROWS: Literal["one"]
    SHIFT: Literal["cancels", "counts"]
    MIXES: Literal["scores", "features", "states"]
    GATED: StrictBool
    WEIGHTS: str  # a normaliser
    SEES: Literal["nothing", "distances", "offsets", "places"]
    ADMITS: Literal["any", "trained"]
    PARTS: dict[str, _KIND]  # option -> kind of components
    CHOOSES: Names  # options that choose the items to measure and change no item's rows
    BUILDS: dict[_PART, SomeNames]  # kind of components -> names


ADAPTER = TypeAdapter(Facts)


def check_facts(file: Path, facts: Mapping[str, Any]) -> None:
    """Raise if a fact does not have its form."""
    try:
        ADAPTER.validate_python({name: facts[name] for name in Facts.__annotations__.keys() & facts.keys()})
    except ValidationError as error:
        raise RankfallError(f"{file}: {translate(error)}") from None
