"""The measure `census_layers`: every model type of the transformers library, untrained, each in a process with limits on time and
memory."""

from typing import Any, Literal

from rankfall.measure.context import Context

NEEDS = "nothing"
BUILDS: dict[str, list[str]] = {}
CHOOSES = ["types", "share"]
READS = {"transformers": "transformers"}
COST = {"seconds": 1100}  # for a quarter of the types
LIMITS = {"tokens": (4, None)}


def census_layers(
    context: Context,
    *,
    types: list[str] = [],
    share: str = "1/1",
    layers: int = 6,
    tokens: int = 16,
    seed: int = 0,
    seconds: int = 60,
    gigabytes: int = 3,
    size: Literal["small", "wide", "released"] = "small",
    library: str = "transformers",
) -> list[dict[str, Any]]:
    """Return the rows of all model types. `types`: by default all that the library registers; `share`: 2/4 is the second quarter of them,
    so that several entries of a configuration together cover all; `layers`: the largest number of layers; `seconds` of a processor and
    `gigabytes`: limits of a type, whose row says if it exceeds one; `size`: small is narrow, with weights as large as the released ones,
    wide has the released width, and released is the library's default configuration except for `layers` (wide and released models are
    streamed if they exceed memory); `library`: the package whose content the rows depend on."""
    from rankfall.census.run import chosen, row_maker

    rows_of = row_maker(layers, tokens, seed, seconds, gigabytes, size)
    return context.rows(chosen(types, share), rows_of, made_of=lambda kind: [])
