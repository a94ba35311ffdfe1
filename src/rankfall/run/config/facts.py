"""Facts of components, which are names in capitals: the form of each, and its description for errors."""

import functools
from typing import Annotated, Any, Literal

from annotated_types import Gt, MinLen
from pydantic import AfterValidator, StrictBool, StrictFloat, StrictInt, TypeAdapter, ValidationError

from rankfall import components
from rankfall.design import Architecture, parts
from rankfall.quantity_files import LISTS

Form = tuple[Any, str]  # a type, and its values in words
NETWORK = tuple(sorted(set(parts(Architecture).values())))  # kinds of components that make up a network
# Types that are made of tables, and so known at run time alone.
_LIST: Any = Literal[tuple(LISTS)]
_KIND: Any = Literal[tuple(components.KINDS)]
_PART: Any = Literal[NETWORK]
Some = Annotated[list[str], MinLen(1)]
Bound = StrictInt | StrictFloat | None


def _in_order(pair: tuple[Any, Any]) -> tuple[Any, Any]:
    low, high = pair
    if None not in pair and low > high:
        raise ValueError("the lowest value is above the highest")
    return pair


def fits_form(fact: str, value: Any) -> bool:
    """Return whether a fact has its form."""
    try:
        _adapter(fact).validate_python(value)
    except ValidationError:
        return False
    return True


@functools.cache
def _adapter(fact: str) -> TypeAdapter[Any]:
    return TypeAdapter(FORMS[fact][0])


def _one_of(*words: str) -> Form:
    return Literal[words], " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))


YES_OR_NO: Form = StrictBool, "True or False"
NAMES = list[str]
REASONS: Form = list[tuple[dict[str, Any], str]], "a list of (filter of cells, reason)"
FORMS: dict[str, Form] = {
    "LIMITS": (
        dict[str, Annotated[tuple[Bound, Bound], AfterValidator(_in_order)]],
        "a mapping of options to (lowest, highest), None for no bound",
    ),
    "REFUSES": REASONS,
    "REQUIRES": REASONS,
    "DATA": (Some, "a list of files"),
    "READS": (Annotated[dict[str, str], MinLen(1)], "a mapping of words to modules"),
    "FILES": (dict[str, list[str]], "a mapping of options to lists of words that stand for no file"),
    "TABLES": (Some, "a list of tables"),
    "FINDS": (
        Annotated[list[_LIST], MinLen(1)],
        f"a list of what quantities declare ({', '.join(LISTS)})",
    ),
    "PROVIDES": (NAMES, "a list of what it has for measures, such as weights"),
    "BREAKS": (
        NAMES,
        "a list of what measures may use that is not the whole of it with this component, such as values",
    ),
    "USES": (
        list[str | Some],
        "a list of what it needs of a network, such as weights; of alternatives, a list in this list, one",
    ),
    "OFFERS": (
        NAMES,
        "a list of what it lets a position or normaliser act on: queries, products, scores, values, lengths",
    ),
    "TOUCHES": (NAMES, "a list of what it acts on: states, queries, products, scores, values, lengths"),
    "IGNORES": (NAMES, "a list of fields of an architecture"),
    "SEQUENCES": _one_of("equal tokens", "different sequences"),
    "SEEDED": YES_OR_NO,
    "OVERLAP": (Annotated[str, MinLen(1)], "why test samples may be training samples"),
    "TRACED": YES_OR_NO,
    "TOKENWISE": YES_OR_NO,
    "SYMMETRIC": YES_OR_NO,
    "LENGTH_VARIES": YES_OR_NO,
    "COST": (
        dict[Literal["seconds", "megabytes"], Annotated[StrictInt | StrictFloat, Gt(0)]],
        "a mapping of seconds or megabytes, of a cell, to a number above 0",
    ),
    "TOKENS": (Annotated[StrictInt, Gt(0)], "how many tokens a sequence has, where no option says"),
    "LENGTHS": (NAMES, "a list of options that hold lengths"),
    "ROWS": _one_of("one", "zero", "constant", "free", "normaliser"),
    "EQUAL_ROWS": _one_of("one"),
    "SHIFT": _one_of("cancels", "counts"),
    "MIXES": _one_of("scores", "features", "states"),
    "GATED": YES_OR_NO,
    "WEIGHTS": (str, "the name of a normaliser"),
    "SEES": _one_of("nothing", "distances", "offsets", "places"),
    "ADMITS": _one_of("any", "trained"),
    "PARTS": (
        dict[str, _KIND],
        f"a mapping of options to kinds of components ({', '.join(components.KINDS)})",
    ),
    "CHOOSES": (NAMES, "a list of options that say which items are measured, and change no item's rows"),
    "BUILDS": (
        dict[_PART, Some],
        f"a mapping of kinds of components ({', '.join(NETWORK)}) to lists of names",
    ),
}
