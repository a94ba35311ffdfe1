"""Reference bands: the residual of known architectures by depth, kind and layer, from tables that ship with the package.

`python -m benchmarks.bands` computes `bands.json`. At birth: small-width architectures of the transformers library and Rankfall's own, with
random tokens. After training: small networks of Rankfall, trained by workflow/presets/bands.yaml. A band runs from the smallest to the
largest mean over samples among networks and seeds.

`real.jsonl` has a row for each model of released width, pretrained or at birth, which says where it comes from. `rankfall bands add`
measures a model and adds a row to the user's own file of this form; `check/library.py` is the measurement.
"""

import json
import math
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from rankfall.disk import atomic
from rankfall.errors import RankfallError, describe_error
from rankfall.streams.flow import Flow

TABLE, REAL = (Path(__file__).with_name(name) for name in ("bands.json", "real.jsonl"))
MOST = 4  # real models beside a report
CAUSAL, BOTH = "one way", "both ways"
BIRTH, TRAINED, PRETRAINED = "at birth", "after training", "pretrained"
KINDS = {BIRTH: "architecture", TRAINED: "small trained network"}


def kind_of(flow: Flow, normed: bool = True) -> str:
    """Return the key of the table for a stream: direction, mixer (attention: a softmax over tokens) and position of the norm.

    All networks of the table are `normed`.
    """
    mixer = "mixing without softmax" if flow.mixer == "none" else flow.mixer
    norm = f"{'post' if flow.post else 'pre'}-norm" if normed else "no norm on the stream"
    return f"{CAUSAL if flow.causal else BOTH}, {mixer}, {norm}"


def say_kind(flow: Flow, normed: bool) -> str:
    """Return the kind for a report. Without residual additions the position of norms is unknown and left out.

    A token that changes only earlier ones, as with a mask of the wrong sense, is said to look backwards; the table has no such kind.
    """
    kind = kind_of(flow, normed) if flow.skips else kind_of(flow).rpartition(", ")[0]
    mixers = [branch for branch in flow.branches if branch.mixes]
    reverse = any(branch.backwards for branch in mixers) and not any(branch.forwards for branch in mixers)
    return kind.replace(BOTH, f"{CAUSAL}, backwards", 1) if reverse else kind


@dataclass(frozen=True)
class ReferenceBand:
    """Smallest and largest residual of each layer, from layer 0, among networks of about the same depth."""

    when: str
    depth: int  # of the networks of the table
    low: tuple[float, ...]
    high: tuple[float, ...]
    of: str
    alone: bool = False  # the band of a single network, which `of` names

    def at(self, layer: int, depth: int) -> tuple[float, float]:
        """Return the band at a layer of a network of another depth, interpolated at the same relative depth."""
        position = layer / depth * self.depth
        before = min(int(position), self.depth - 1)
        share = position - before
        low, high = ((1 - share) * side[before] + share * side[before + 1] for side in (self.low, self.high))
        return low, high


@cache
def table() -> dict[str, Any]:
    """Return the table. Its bands: when -> kind -> depth -> {low, high: by layer, of: names}."""
    parsed: dict[str, Any] = json.loads(TABLE.read_text())
    return parsed


def bands_for(flow: Flow, normed: bool = True) -> list[ReferenceBand]:
    """Return the bands at birth and after training, at the nearest depth, as far as the table has them."""
    return bands_of([kind_of(flow, normed)], flow.depth) if flow.skips else []


def bands_of(kinds: list[str], depth: int) -> list[ReferenceBand]:
    """Return the bands at birth and after training, each over all of these kinds."""
    bands = [merge_bands(when, kinds, depth) for when in (BIRTH, TRAINED)]
    return [band for band in bands if band is not None]


def merge_bands(when: str, kinds: list[str], depth: int) -> ReferenceBand | None:
    """Return the band over all entries at the nearest depth within a factor of two, or None if there is none."""
    known = [by_depth for kind in kinds if (by_depth := table()["bands"].get(when, {}).get(kind))]
    depths = {int(key) for by_depth in known for key in by_depth if 0.5 <= int(key) / depth <= 2}
    if not depths:
        return None
    nearest = min(depths, key=lambda near: (abs(near - depth), near))
    entries = [by_depth[str(nearest)] for by_depth in known if str(nearest) in by_depth]
    names = sorted({name for entry in entries for name in entry["of"]})
    listed = len(names) < 3 and when == BIRTH
    counted = f"{len(names)} {KINDS[when]}{'s' * (len(names) > 1)} of this kind"
    networks = " and ".join(names) if listed else counted
    low = tuple(map(min, zip(*(entry["low"] for entry in entries))))
    high = tuple(map(max, zip(*(entry["high"] for entry in entries))))
    return ReferenceBand(when, nearest, low, high, f"{networks} with {nearest} layers", listed and len(names) == 1)


def no_band(flow: Flow, normed: bool = True) -> str:
    """Return why there is no band at birth, or '' if there is one."""
    if not flow.skips:
        return "bands are of networks with residual additions"
    kind = kind_of(flow, normed)
    known = table()["bands"].get(BIRTH, {}).get(kind)
    if not known:
        return f"the table has no network of this kind: {kind}"
    if not any(0.5 <= int(layers) / flow.depth <= 2 for layers in known):
        return f"the table has networks of {', '.join(known)} layers, none near {flow.depth}"
    return ""


@dataclass(frozen=True)
class RealModel:
    """Hold what one model of released width keeps on one text, and where weights and numbers come from."""

    name: str
    when: str  # PRETRAINED or BIRTH
    kind: str
    width: int
    residual: tuple[float, ...]  # of layers 0 .. L, mean over samples
    package: str  # name and version of the package that ships the weights; empty: another source
    revision: str  # digest or commit of the weights; at birth the seed
    quantised: str  # format of the matrices, if it is not that of their training
    text: str
    samples: int
    length: int
    versions: str  # of torch and transformers

    @property
    def depth(self) -> int:
        return len(self.residual) - 1

    @property
    def identity(self) -> tuple[Any, ...]:
        """Return what names a measurement: a second one replaces the first."""
        return self.name, self.when, self.revision, self.quantised, self.text, self.samples, self.length

    def describe(self) -> str:
        """Return the model's name, with its format, sizes and text, for a sentence."""
        about = (self.when, self.quantised, f"{self.depth} layers of width {self.width}", f"text {self.text}")
        return f"{self.name} ({', '.join(filter(None, about))})"


def user_file() -> Path:
    """Return the file of the user's rows."""
    home = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(home) / "rankfall" / "bands.jsonl"


def read_models(path: Path) -> list[RealModel]:
    """Read the rows of a file; none if it does not exist."""
    models = []
    for number, line in enumerate(path.read_text().splitlines() if path.is_file() else [], 1):
        try:
            models.append(TypeAdapter(RealModel).validate_json(line))
        except ValidationError as error:
            raise RankfallError(
                f"{path}, line {number} is no row of `rankfall bands add`: {describe_error(error, 120)}\n  fix: delete the line"
            ) from None
    return models


def write_model(path: Path, model: RealModel) -> str:
    """Add a row to a file, in place of one of the same measurement, and return its line."""
    others = [row for row in read_models(path) if row.identity != model.identity]
    lines = [TypeAdapter(RealModel).dump_json(row).decode() for row in (*others, model)]
    with atomic(path) as file:
        file.write("".join(f"{line}\n" for line in lines).encode())
    return lines[-1]


def real_models(kind: str, depth: int, width: int) -> list[RealModel]:
    """Return the models of this kind whose depth and width are nearest, of half to twice the depth, with the first row of each."""
    rows = {(model.name, model.when): model for path in (user_file(), REAL) for model in reversed(read_models(path))}
    near = [model for model in rows.values() if model.kind == kind and 0.5 <= model.depth / depth <= 2]
    near.sort(key=lambda model: abs(math.log(model.depth / depth)) + abs(math.log(model.width / width)))
    return near[:MOST]
