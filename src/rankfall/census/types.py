"""The measurement of one model type: its rows, or the outcome and the reason if it has no numbers."""

from __future__ import annotations

import inspect
import re
import resource
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from rankfall.census.gains import Gain, bring_to_released, released_gains
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
    SMALL,
    WIDE,
)
from rankfall.census.released import Streamed, released_example, rows_of_states, streamed_rows
from rankfall.census.streams import rows_of_stream
from rankfall.check.library import small_example
from rankfall.errors import RankfallError, describe_error
from rankfall.models.families.classes import NoModel, refused_defaults
from rankfall.streams.arguments import ChangesWidth, NoStream, keep_random_state
from rankfall.streams.examine import Examined, examine
from rankfall.streams.flow import Flow

Rows = list[dict[str, Any]]
# Messages of the library, by what they say is missing: a package, the network, or memory.
ABSENT = re.compile(r"requires the .* librar|No module named|is not installed|needs? .* to be installed|pip install")
ASKS = re.compile(
    r"couldn't connect|offline mode|LocalEntryNotFound|OfflineMode|ConnectionError|hub cannot be reached|Max retries",
    re.I,
)
FULL = re.compile(r"allocate memory|MemoryError|bad_alloc")

YEAR = re.compile(r"[Cc]opyright (?:\(c\) )?((?:19|20)\d\d)")
INPUTS = {  # a word in the name of an input -> kind of input
    "input_ids": "text", "pixel": "pictures", "image": "pictures", "input_features": "sound", "input_values": "sound", "audio": "sound",
    "past_values": "series", "inputs_embeds": "states", "hidden_states": "states", "query_embeds": "states", "states": "states",
    "inputs": "states",
}  # fmt: skip


@dataclass
class Example:
    """A model and inputs on which it runs.

    `gains`: the gains to which its weights were scaled, None for a model of the released width. `reason`: why other weights were not.
    """

    model: nn.Module
    config: Any
    inputs: dict[str, Tensor]
    gains: dict[str, Gain] | None = None
    reason: str = ""


def rows_of_type(kind: str, layers: int, tokens: int, seed: int, size: str = SMALL, gigabytes: float = 3) -> Rows:
    """Return the rows of a type: one per layer and stream, or a single row if it is not measured.

    `size`: small, with weights as large as the released ones; wide, with the released widths and at most `layers` layers; or released. A
    model of the last two is streamed if it does not fit into `gigabytes`.
    """
    import transformers
    from transformers import CONFIG_MAPPING

    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    about = {"type": kind, "size": size, "stream": "", **origin(kind)}
    try:
        if size == SMALL:
            example = small_as_released(kind, layers, tokens, seed)
        else:
            example = Example(*released_example(kind, seed, tokens, gigabytes, layers if size == WIDE else None))
    except Streamed as error:
        return [about | row for row in streamed_type(error.config, seed, tokens)]
    except NoModel as error:
        return [about | outcome_row(NO_MODEL, str(error))]
    except Exception as error:  # whatever the library raises
        return [about | failure_row(error, kind)]
    about |= {"class": type(example.model).__name__, "inputs": kinds_of_inputs(example.inputs)}
    about["parameters"] = sum(weight.numel() for weight in example.model.parameters())
    whole = partial(rows_of_stream, released=example.gains, unbrought=example.reason)
    rows = measure_type(kind, example, rows_of_states if size == WIDE else whole)
    if size == SMALL and rows[0]["outcome"] == MEASURED:
        deeper = rows_of_states_at(kind, 2 * layers, tokens, seed) if has_time() else []
        rows = [row | kept_by_twice_the_layers(row, deeper) for row in rows]
    if not isinstance(example.config, CONFIG_MAPPING[kind]):
        part = f"the whole runs on none of the inputs that were tried: its part {type(example.model).__name__}"
        rows = [row | {"reason": "; ".join(filter(None, (part, row["reason"])))} for row in rows]
    return [about | row for row in rows]


def small_as_released(kind: str, layers: int, tokens: int, seed: int) -> Example:
    """Return a small model with weights as large as the released ones."""
    model, config, inputs = small_example(kind, {}, seed, tokens, layers)
    gains, reason = released_gains(kind, model, layers)
    bring_to_released(model, gains)
    return Example(model, config, inputs, gains, reason)


def has_time() -> bool:
    """Return whether this process has used less than a third of its processor time.

    A model of twice the depth costs at most twice as much, so it cannot exceed the limit and lose the type its rows.
    """
    limit = resource.getrlimit(resource.RLIMIT_CPU)[0]
    return limit == resource.RLIM_INFINITY or 3 * time.process_time() < limit


def rows_of_states_at(kind: str, layers: int, tokens: int, seed: int) -> Rows:
    """Return the rows of the states of a small model with at most `layers` layers."""
    try:
        return measure_type(kind, small_as_released(kind, layers, tokens, seed), rows_of_states)
    except Exception as error:  # whatever the library raises
        return [failure_row(error, kind)]


def kept_by_twice_the_layers(row: dict[str, Any], deeper: Rows) -> dict[str, Any]:
    """Return the share of the residual that the same stream of a model with twice as many layers keeps."""
    ends = {
        state["layer"]: state["residual"]
        for state in deeper
        if state["outcome"] == MEASURED and state["stream"] == row["stream"] and state["layers"] == 2 * row["layers"]
    }
    first, last = ends.get(0), ends.get(2 * row["layers"])
    if first and last is not None:
        return {"kept_depth_2": last / first}
    reason = "kept_depth_2: it is not built with twice as many layers, or not in time"
    return {"reasons": "; ".join(filter(None, (row["reasons"], reason)))}


def streamed_type(config: Any, seed: int, tokens: int) -> Rows:
    """Return the rows of a type that does not fit into memory, or a row with the reason."""
    try:
        rows = streamed_rows(config, seed, tokens)
    except Exception as error:  # whatever the library raises
        line = str(error) if isinstance(error, RankfallError) else describe_error(error, 400)
        return [outcome_row(OVER, line)]
    return [{"outcome": MEASURED, "reason": "streamed", "streams": 1} | row for row in rows]


def origin(kind: str) -> dict[str, Any]:
    from transformers import CONFIG_MAPPING

    if kind not in CONFIG_MAPPING:
        raise RankfallError(f"there is no model type {kind!r}")
    cls = CONFIG_MAPPING[kind]
    year_written, year_reason = year(cls)
    return {"family": library_folder(cls), "year": year_written, "year_reason": year_reason}


def library_folder(cls: type) -> str:
    """Return the library folder of a configuration or model class: transformers.models.bert -> bert."""
    parts = cls.__module__.split(".")
    return parts[parts.index("models") + 1] if "models" in parts else parts[-1]


def year(cls: type) -> tuple[int | None, str]:
    """Return the year of the copyright line at the top of a class's file, or None and the reason."""
    match = YEAR.search(Path(inspect.getfile(cls)).read_text(encoding="utf-8")[:2000])
    return (int(match[1]), "") if match else (None, "the file of its code has no line of copyright with a year")


def kinds_of_inputs(names: Iterable[str]) -> str:
    """Return the kinds of inputs (text, pictures, sound, ...) by their names."""
    matches = ([kind for word, kind in INPUTS.items() if name.startswith(word) or f"_{word}" in name] for name in names)
    return " and ".join(dict.fromkeys(kinds[0] for kinds in matches if kinds)) or "other"


def outcome_row(outcome: str, reason: str) -> dict[str, Any]:
    return {"outcome": outcome, "reason": " ".join(reason.split())[:400]}


def failure_row(error: BaseException, kind: str) -> dict[str, Any]:
    """Return the outcome of a type that cannot be built, or that runs on none of the inputs."""
    line = describe_error(error, 400) if not isinstance(error, RankfallError) else str(error)
    for pattern, outcome in ((FULL, OVER), (ASKS, NETWORK), (ABSENT, NO_PACKAGE)):
        if pattern.search(line):
            return outcome_row(outcome, line)
    defaults = refused_defaults(kind)
    return outcome_row(NO_DEFAULTS, defaults) if defaults else outcome_row(NOT_BUILT, line)


def measure_type(kind: str, example: Example, measure: Callable[[Examined, Flow], Rows]) -> Rows:
    """Return the rows of each stream."""
    note, model, inputs = "", example.model, example.inputs
    try:
        try:
            examined = examine(model, inputs, name=kind)
        except ChangesWidth as error:
            first, last = error.layers[0], error.layers[-1]
            if first not in dict(model.named_modules()):  # these layers are not modules, so they cannot be named
                raise
            examined = examine(model, inputs, name=kind, blocks=list(error.layers))
            note = f"its width changes on the way: the part of one width, {first} to {last}"
        with keep_random_state(), torch.no_grad():
            rows = [row for flow in examined.flows for row in measure(examined, flow)]
    except NoStream as error:
        return [outcome_row(NO_STREAM, str(error))]
    except RankfallError as error:
        return [outcome_row(OVER if FULL.search(str(error)) else REFUSED, str(error))]
    shared = {"outcome": MEASURED, "reason": note, "streams": len(examined.flows)}
    return [shared | row for row in rows]
