"""Labels and colours of a configuration's own (`labels:`, `colours:`), for all that is drawn or written within `looks(...)`.

Tables keep the names of the configuration; what a reader sees asks `label(name)`, and colours ask `own_colour(name)`.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

Names = Mapping[str, str]
_LOOKS: ContextVar[tuple[Names, Names]] = ContextVar("looks", default=({}, {}))


@contextmanager
def looks(labels: Names, colours: Names) -> Iterator[None]:
    """Within, names have these labels and colours (`#rrggbb`)."""
    before = _LOOKS.set((labels, colours))
    try:
        yield
    finally:
        _LOOKS.reset(before)


def label(name: object) -> str:
    """What a reader sees of a name: its label, or the name itself."""
    return _LOOKS.get()[0].get(str(name), str(name))


def own_colour(name: object) -> str | None:
    """The colour that the configuration gives a name, or what has this label; None if it gives none."""
    labels, colours = _LOOKS.get()
    named = next((one for one, text in labels.items() if text == str(name)), str(name))
    return colours.get(str(name), colours.get(named))
