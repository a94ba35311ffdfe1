"""Compositions that components rule out: by REFUSES, by REQUIRES, or by a position's TOUCHES that an attention's OFFERS lack.

The plan refuses such cells before anything runs (`run/config/rules.py`). A measure that composes networks itself says so in its rows.
"""

from collections.abc import Mapping
from typing import Any

from rankfall.components import facts_of
from rankfall.design import Architecture
from rankfall.design import parts as fields_of


def refusal(design: Architecture) -> str | None:
    """Return the reason why this composition is not supported, in one line, or None if it is."""
    for field, kind in fields_of(Architecture).items():
        part = getattr(design, field)
        facts = {} if part is None else facts_of(kind, part.name)
        for fact, verb in (("REFUSES", "cannot be combined with"), ("REQUIRES", "needs")):
            for wanted, reason in facts.get(fact, ()):
                if all(name in fields_of(Architecture) for name in wanted) and fits(design, wanted) == (
                    fact == "REFUSES"
                ):
                    return f"{kind} {part.name!r} {verb} {write_fields(wanted)}: {reason}"
    offers = facts_of("attention", design.attention.name).get("OFFERS")
    for kind, part in (("position", design.position), ("normaliser", design.normaliser)):
        touches = () if part is None else facts_of(kind, part.name).get("TOUCHES", ())
        for place in touches:
            if offers is not None and place not in ("states", *offers):
                return f"{kind} {part.name!r} acts on {place}, which attention {design.attention.name!r} does not let it reach"
    return None


def fits(design: Architecture, wanted: Mapping[str, Any]) -> bool:
    """Check whether every field's component is one of those named, whatever its options."""
    names = {field: getattr(getattr(design, field), "name", None) for field in wanted}
    return all(name in as_list(wanted[field]) for field, name in names.items())


def as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def write_fields(wanted: Mapping[str, Any]) -> str:
    return ", ".join(f"{field}={' or '.join(map(str, as_list(value)))}" for field, value in wanted.items())
