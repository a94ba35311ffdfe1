"""Labels and colours of a configuration (`labels:`, `colours:`), which apply to everything drawn or written within `looks(...)`.

Tables keep the names of the configuration; texts for readers use `label(name)`, and colours use `own_colour(name)`.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

Names = Mapping[str, str]
_LOOKS: ContextVar[tuple[Names, Names]] = ContextVar("looks", default=({}, {}))


@contextmanager
def looks(labels: Names, colours: Names) -> Iterator[None]:
    """Set the labels and colours (`#rrggbb`) of names within the context."""
    token = _LOOKS.set((labels, colours))
    try:
        yield
    finally:
        _LOOKS.reset(token)


def label(name: object) -> str:
    """Return the label of a name, or the name itself if it has none."""
    return _LOOKS.get()[0].get(str(name), str(name))


def own_colour(name: object) -> str | None:
    """Return the configured colour of a name or of a label's name; None if there is none."""
    labels, colours = _LOOKS.get()
    key = next((original for original, text in labels.items() if text == str(name)), str(name))
    return colours.get(str(name), colours.get(key))
