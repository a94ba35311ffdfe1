"""Check of a config's numbers of layers, experts and other parts. Far too large numbers are refused before the library builds them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rankfall.errors import RankfallError

MOST = 10_000  # layers, experts and the like; no known model has 2,000
# num_hidden_layers, n_layer, encoder_layers, num_local_experts, depths, num_hidden_groups, inner_group_num ...
REPEATED = re.compile(r"(^|_)(layer|expert|depth|group|stage|block)s?(_num)?$", re.IGNORECASE)


def check_sizes(name: str, values: Mapping[str, Any]) -> None:
    """Raise an error if a config asks for more parts than any model has."""
    for key, number in counts(values):
        if number > MOST:
            raise RankfallError(
                f"model {name!r}: its config says {key}: {number}, and no model has more than {MOST:,}; is the file damaged?"
            )


def counts(values: Any, path: str = "") -> Iterator[tuple[str, int]]:
    """Yield (key, integer) of all such keys, in nested parts and in lists too."""
    items = values.items() if isinstance(values, Mapping) else ()
    for key, value in items:
        where = f"{path}.{key}" if path else str(key)
        if isinstance(value, Mapping):
            yield from counts(value, where)
        elif REPEATED.search(str(key)):
            for one in value if isinstance(value, list | tuple) else [value]:
                if isinstance(one, int) and not isinstance(one, bool):
                    yield where, one
