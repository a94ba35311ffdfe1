"""One model type: built small, examined, measured; its rows, or the outcome and the reason for which it has no numbers."""

from __future__ import annotations

import re
from typing import Any

import torch

from rankfall.census.outcomes import (
    MEASURED,
    NETWORK,
    NO_DEFAULTS,
    NO_MODEL,
    NO_PACKAGE,
    NO_STREAM,
    NOT_BUILT,
    OVER,
    REFUSED,
)
from rankfall.errors import RankfallError, describe_error

Rows = list[dict[str, Any]]
ABSENT = re.compile(r"requires the .* librar|No module named|is not installed|needs? .* to be installed|pip install")
ASKS = re.compile(
    r"couldn't connect|offline mode|LocalEntryNotFound|OfflineMode|ConnectionError|hub cannot be reached|Max retries",
    re.I,
)
FULL = re.compile(r"allocate memory|MemoryError|bad_alloc")


def rows_of_type(kind: str, layers: int, tokens: int, seed: int, size: str = "small", gigabytes: float = 3) -> Rows:
    """The rows of a type: one a layer of each of its streams; a single one where it is not measured. `size`: small, or released, whose
    model is whole where it fits into so many gigabytes."""
    import transformers
    from transformers import CONFIG_MAPPING

    from rankfall.census.released import Streamed, released_example
    from rankfall.check.library import small_example
    from rankfall.models.families.classes import NoModel

    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    about = {"type": kind, "stream": "", **origin(kind)}
    try:
        if size == "released":
            model, config, inputs = released_example(kind, seed, tokens, gigabytes)
        else:
            model, config, inputs = small_example(kind, {}, seed, tokens, layers)
    except Streamed as error:
        return [about | row for row in streamed_type(error.config, seed, tokens)]
    except NoModel as error:
        return [about | outcome_row(NO_MODEL, str(error))]
    except Exception as error:  # whatever the library raises
        return [about | why_not(error, kind)]
    from rankfall.census.origins import kinds_of_inputs

    about |= {
        "class": type(model).__name__,
        "inputs": kinds_of_inputs(inputs),
        "parameters": sum(one.numel() for one in model.parameters()),
    }
    rows = measure_type(kind, model, inputs)
    if not isinstance(config, CONFIG_MAPPING[kind]):
        part = f"the whole runs on none of the inputs that were tried: its part {type(model).__name__}"
        rows = [row | {"reason": "; ".join(filter(None, (part, row["reason"])))} for row in rows]
    return [about | row for row in rows]


def streamed_type(config: Any, seed: int, tokens: int) -> Rows:
    """The rows of a type that does not fit into memory, or the reason for which it has none."""
    from rankfall.census.released import streamed_rows

    try:
        rows = streamed_rows(config, seed, tokens)
    except Exception as error:  # whatever the library raises
        line = str(error) if isinstance(error, RankfallError) else describe_error(error, 400)
        return [outcome_row(OVER, line)]
    return [{"outcome": MEASURED, "reason": "streamed", "streams": 1} | row for row in rows]


def origin(kind: str) -> dict[str, Any]:
    from transformers import CONFIG_MAPPING

    from rankfall.census.origins import family, year

    if kind not in CONFIG_MAPPING:
        raise RankfallError(f"there is no model type {kind!r}")
    cls = CONFIG_MAPPING[kind]
    made, why = year(cls)
    return {"family": family(cls), "year": made, "year_reason": why}


def outcome_row(outcome: str, reason: str) -> dict[str, Any]:
    return {"outcome": outcome, "reason": " ".join(reason.split())[:400]}


def why_not(error: BaseException, kind: str) -> dict[str, Any]:
    """The outcome of a type that cannot be built, or runs on nothing."""
    line = describe_error(error, 400) if not isinstance(error, RankfallError) else str(error)
    if FULL.search(line):
        return outcome_row(OVER, line)
    if ASKS.search(line):
        return outcome_row(NETWORK, line)
    if ABSENT.search(line):
        return outcome_row(NO_PACKAGE, line)
    from rankfall.models.families.defaults import refused_defaults

    defaults = refused_defaults(kind)
    return outcome_row(NO_DEFAULTS, defaults) if defaults else outcome_row(NOT_BUILT, line)


def measure_type(kind: str, model: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> Rows:
    """One row a layer of each stream."""
    from rankfall.census.streams import rows_of_stream
    from rankfall.models.modules.examine import examine
    from rankfall.models.modules.given import ChangesWidth, NoStream, keep_random_state

    note = ""
    try:
        try:
            examined = examine(model, inputs, name=kind)
        except ChangesWidth as error:
            first, last = error.layers[0], error.layers[-1]
            if first not in dict(model.named_modules()):  # additions that no module holds cannot be named
                raise
            examined = examine(model, inputs, name=kind, blocks=list(error.layers))
            note = f"its width changes on the way: the part of one width, {first} to {last}"
        with keep_random_state(), torch.no_grad():
            found = [row for flow in examined.flows for row in rows_of_stream(examined, flow)]
    except NoStream as error:
        return [outcome_row(NO_STREAM, str(error))]
    except RankfallError as error:
        return [outcome_row(OVER if FULL.search(str(error)) else REFUSED, str(error))]
    shared = {"outcome": MEASURED, "reason": note, "streams": len(examined.flows)}
    return [shared | row for row in found]
