"""Facts of components, which are literals in capitals: the required form of each, and its description for errors."""

from collections.abc import Callable
from typing import Any

from rankfall import components
from rankfall.design import Architecture, parts
from rankfall.quantity_files import LISTS

Form = tuple[Callable[[Any], bool], str]
NETWORK = frozenset(parts(Architecture).values())  # kinds of components that make up a network


def _pairs(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(item, list | tuple) and len(item) == 2 for item in value)


def _bounds(value: Any) -> bool:
    if not isinstance(value, dict) or not _pairs(list(value.values())):
        return False
    ends = [end for pair in value.values() for end in pair]
    numbers = all(end is None or type(end) in (int, float) for end in ends)
    return numbers and all(None in (low, high) or low <= high for low, high in value.values())


def _reasons(value: Any) -> bool:
    return _pairs(value) and all(isinstance(wanted, dict) and isinstance(why, str) for wanted, why in value)


def _words(value: Any) -> bool:
    return _is_list_of_text(value) and bool(value)


def _is_list_of_text(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)


def _uses(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(item, str) or _words(item) for item in value)


def _costs(value: Any) -> bool:
    return isinstance(value, dict) and all(
        name in ("seconds", "megabytes") and type(number) in (int, float) and number > 0
        for name, number in value.items()
    )


def _one_of(*words: str) -> Form:
    return (lambda value: value in words), " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))


# A plan reads these without running code, so a value that is not a literal would bound nothing.
READ_ALONE = ("LIMITS", "REFUSES", "REQUIRES")
READ_ALONE_OF = {"measure": ("TABLE", "TABLES", "NEEDS", "USES"), "figure": ("TABLES",), "task": ("INPUTS", "TARGETS")}
YES_OR_NO: Form = (lambda value: isinstance(value, bool)), "True or False"
FORMS: dict[str, Form] = {
    "LIMITS": (
        _bounds,
        "a mapping of options to (lowest, highest), None for no bound",
    ),
    "REFUSES": (_reasons, "a list of (filter of cells, reason)"),
    "REQUIRES": (_reasons, "a list of (filter of cells, reason)"),
    "DATA": (_words, "a list of files"),
    "READS": (
        lambda value: isinstance(value, dict) and _words([*value, *value.values()]),
        "a mapping of words to modules",
    ),
    "FILES": (
        lambda value: isinstance(value, dict) and all(isinstance(item, list | tuple) for item in value.values()),
        "a mapping of options to lists of words that stand for no file",
    ),
    "TABLES": (_words, "a list of tables"),
    "FINDS": (
        lambda value: _words(value) and set(value) <= LISTS.keys(),
        f"a list of what quantities declare ({', '.join(LISTS)})",
    ),
    "PROVIDES": (_is_list_of_text, "a list of what it has for measures, such as weights"),
    "BREAKS": (
        _is_list_of_text,
        "a list of what measures may use that is not the whole of it with this component, such as values",
    ),
    "USES": (
        _uses,
        "a list of what it needs of a network, such as weights; of alternatives, a list in this list, one",
    ),
    "OFFERS": (
        _is_list_of_text,
        "a list of what it lets a position or normaliser act on: queries, products, scores, values, lengths",
    ),
    "TOUCHES": (_is_list_of_text, "a list of what it acts on: states, queries, products, scores, values, lengths"),
    "IGNORES": (_is_list_of_text, "a list of fields of an architecture"),
    "SEQUENCES": _one_of("equal tokens", "different sequences"),
    "SEEDED": YES_OR_NO,
    "OVERLAP": (lambda value: isinstance(value, str) and bool(value), "why test samples may be training samples"),
    "TRACED": YES_OR_NO,
    "TOKENWISE": YES_OR_NO,
    "SYMMETRIC": YES_OR_NO,
    "LENGTH_VARIES": YES_OR_NO,
    "COST": (_costs, "a mapping of seconds or megabytes, of a cell, to a number above 0"),
    "TOKENS": (lambda value: type(value) is int and value > 0, "how many tokens a sequence has, where no option says"),
    "LENGTHS": (_is_list_of_text, "a list of options that hold lengths"),
    "ROWS": _one_of("one", "zero", "constant", "free", "normaliser"),
    "EQUAL_ROWS": _one_of("one"),
    "SHIFT": _one_of("cancels", "counts"),
    "MIXES": _one_of("scores", "features", "states"),
    "GATED": YES_OR_NO,
    "WEIGHTS": (lambda value: isinstance(value, str), "the name of a normaliser"),
    "SEES": _one_of("nothing", "distances", "offsets", "places"),
    "ADMITS": _one_of("any", "trained"),
    "PARTS": (
        lambda value: isinstance(value, dict) and all(kind in components.KINDS for kind in value.values()),
        f"a mapping of options to kinds of components ({', '.join(components.KINDS)})",
    ),
    "CHOOSES": (_is_list_of_text, "a list of options that say which items are measured, and change no item's rows"),
    "BUILDS": (
        lambda value: isinstance(value, dict) and set(value) <= NETWORK and all(map(_words, value.values())),
        f"a mapping of kinds of components ({', '.join(sorted(NETWORK))}) to lists of names",
    ),
}
