"""The types of a configuration: its sections and entries. `design.py` declares the fields of tasks, architectures and trainings.

`parse` builds a `Config` from loaded YAML, or raises an error that names the key. Here a component is only a name: `options.py` checks that
it exists and takes its options, and `grid.py` expands the grid.
"""

import json
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, ConfigDict, Field, ValidationError

from rankfall.design import Architecture, Component, Task, Training
from rankfall.errors import RankfallError
from rankfall.run.config.problems import problem, show_value, translate, unknown_key, wrong_type
from rankfall.run.config.values import LABEL, Entry, Label, Number, Parsed, Part, model_of
from rankfall.yaml_text import load

Size = Annotated[int, Field(ge=1, le=1_000_000)]
Threads = Annotated[int, Field(ge=1, le=1024)]


class Measure(Entry):
    """An entry of `measures`, which makes rows from networks and data. All other keys are options of the component."""

    name: Label
    measure: Part = Field(description="the component, by default the one with the entry's name")
    cells: dict[str, Any] = Field(
        {}, description="which cells: any axis of the grid -> a value or a list; default: all"
    )

    @property
    def component(self) -> Component:
        return self.measure


class Figure(Entry):
    """An entry of `figures`, a picture made from tables alone. All other keys are options of the component."""

    name: Label
    figure: Part = Field(description="the component, by default the one with the entry's name")

    @property
    def component(self) -> Component:
        return self.figure


class Crossing(Entry):
    """An entry of the grid: the cross product of its axes, without `exclude`, plus `include`.

    Besides these keys, any field of an architecture is an axis, and so are `training.<field>` and `task.<option>`.
    """

    model_config = ConfigDict(extra="allow")
    task: Any = Field(description="a task's name, or a list")
    architecture: Any = Field(description="an architecture's name, or a list")
    training: Any = Field(description="a training's name, or a list")
    seed: Any = Field(description='seeds: 0, [0, 1, 2] or "0..4"')
    exclude: list[dict[str, Any]] = Field([], description="combinations to leave out")
    include: list[dict[str, Any]] = Field(
        [], description="cells to add; an axis that is not given has the entry's values"
    )

    @property
    def axes(self) -> dict[str, Any]:
        """Return every axis with its values as in the configuration."""
        labels = {name: getattr(self, name) for name in ("task", "architecture", "training", "seed")}
        return labels | (self.model_extra or {})


def _device(value: str) -> str:
    """Return the device, or raise if torch knows none of that name."""
    if not re.fullmatch(r"auto|cpu|cuda(:\d{1,3})?", value):
        raise ValueError(f"{show_value(value)} is not possible; allowed: auto, cpu, cuda, cuda:0 and so on")
    return value


def _folder(value: str) -> str:
    """Return the folder's name, or raise if the file system, a shell or Snakemake cannot take it."""
    if value.startswith("~"):  # Snakemake and make do not expand it and would create a folder of that name
        raise ValueError(f"{value!r} is not expanded here; write the whole path")
    if not value.isprintable() or value != value.strip() or value.startswith("-") or set("{}<>") & set(value):
        allowed = "a folder's name without {, }, <, >, line breaks, a dash in front, or spaces at its ends"
        raise ValueError(f"{value!r} is not possible; allowed: {allowed}")  # Snakemake takes {a} for a wildcard
    return value


class Compute(Entry):
    """Device, threads and sizes of jobs. Nothing here is part of a key, except the engine that a cell gets from it."""

    device: Annotated[str, AfterValidator(_device)] = Field("cpu", description="cpu, cuda, cuda:1 or auto")
    engine: Literal["auto", "plain", "machine"] = Field(
        "auto",
        description="of training steps: auto, the machine where it serves; plain, through autograd; machine, insist",
    )
    threads: Threads = Field(1, description="threads of one job")
    stack: Size = Field(32, description="networks trained at once")
    workers: Threads = Field(
        1, description="processes of one job, each with a stack of its own, and with a GPU on cuda"
    )
    workers_per_gpu: Threads = Field(1, description="workers that share a GPU")
    shard_minutes: Annotated[Number, Field(gt=0)] = Field(20.0, description="about how long one job should take")
    costs: str | None = Field(None, description="file of measured costs, by `rankfall plan --calibrate`")
    checkpoint_seconds: Annotated[Number, Field(gt=0)] = Field(60.0, description="what a killed job loses at most")
    tensorboard: bool = Field(False, description="write curves of cells that train to `curves/` of the results")


class Config(Entry):
    """A benchmark: tasks, architectures and trainings, their grid, and its measures and figures."""

    name: Annotated[str, Field(min_length=1)] = Field("default", description="shown in tables and in the report")
    results: Annotated[str, Field(min_length=1), AfterValidator(_folder)] = Field(
        "results", description="folder where everything goes"
    )
    tasks: dict[str, Annotated[Task, Parsed]] = Field({}, description="named tasks")
    architectures: dict[str, Annotated[Architecture, Parsed]] = Field(
        {}, description="named compositions; `base: other` inherits"
    )
    trainings: dict[str, Annotated[Training, Parsed]] = Field({}, description="named trainings; `base: other` inherits")
    grid: list[Crossing] = Field([], description="the cells; without any, only what needs none is measured")
    measures: dict[str, Measure] = Field({}, description="what is measured on the cells")
    figures: dict[str, Figure] = Field({}, description="what is drawn from the tables")
    labels: dict[str, str] = Field({}, description="a name of any kind here -> what figures and page call it")
    colours: dict[str, str] = Field({}, description='a name of any kind here -> its colour, "#rrggbb" or such as teal')
    page: bool = Field(True, description="whether a run ends with report/index.html, all its numbers on one page")
    compute: Compute = Field(
        Compute.model_validate({}), description="how to compute it; never part of a result's identity"
    )


WITH_BASE = ("architectures", "trainings")  # the other sections name a component each, and its options
MODELS: Mapping[str, type[Entry]] = {
    "tasks": model_of(Task),
    "architectures": model_of(Architecture),
    "trainings": model_of(Training),
    "measures": Measure,
    "figures": Figure,
}


def _where(source: Path | str) -> str:
    """Return a hint if the working directory is no project."""
    if Path(source).exists() or Path("Snakefile").exists():
        return ""
    return "; cd to your project, or pass --config FILE; `rankfall init FOLDER` makes a project"


def read(source: Mapping[str, Any] | str | Path) -> dict[str, Any]:
    """Return a configuration as plain data, from a mapping or from a YAML or JSON file."""
    if isinstance(source, Mapping):
        return dict(source)
    try:
        content = Path(source).read_bytes()
    except OSError as error:
        raise RankfallError(f"{source}: cannot be read: {error.strerror}{_where(source)}") from None
    try:
        raw = (json.loads if Path(source).suffix == ".json" else load)(content.decode())
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        fault = getattr(error, "problem", None) or str(error)
        if fault.startswith("expected <block end>"):
            fault = "this line continues no block: indent it as far as the lines that it belongs to"
        raise RankfallError(f"{source}{where}: {fault}") from None
    if not isinstance(raw, dict):
        raise wrong_type(str(source), raw, "a mapping")
    return raw


def parse(raw: Mapping[str, Any]) -> Config:
    """Return a `Config` from plain data. Raise the first problem as a `RankfallError`."""
    _check_keys("", raw, Config.model_fields)
    shaped = {key: _section(key, value) if key in MODELS else value for key, value in raw.items()}
    if "compute" in shaped:
        _check_keys("compute", shaped["compute"], Compute.model_fields)
    try:
        return Config.model_validate(shaped)
    except ValidationError as error:
        raise translate(error) from None


def _section(section: str, entries: Any) -> dict[str, dict[str, Any]]:
    """Return entries with the values of their bases, their names, and the options moved into the component."""
    if not isinstance(entries, dict):
        raise wrong_type(section, entries, "a mapping of names to entries")
    for name, entry in entries.items():
        if not isinstance(name, str):
            raise unknown_key(section, name, ())
        if not LABEL.fullmatch(name):
            fault = f"{name!r} becomes part of file names: use letters, digits, _, + and -"
            raise problem(f"{section}.{name}" if name else section, fault)
        if entry is not None and not isinstance(entry, dict):
            raise wrong_type(f"{section}.{name}", entry, "a mapping")
    shaped = {}
    for name in entries:
        path = f"{section}.{name}"
        fields = set(MODELS[section].model_fields)
        if section in WITH_BASE:
            entry = _inherit(section, entries, name, ())
            _check_keys(path, entry, (fields | {"base"}) - {"name"})
        else:
            entry = _gather(dict(entries[name] or {}), path, section.removesuffix("s"), fields, name)
        shaped[name] = {**entry, "name": name}
    return shaped


def _inherit(section: str, entries: Mapping[str, Any], name: str, seen: tuple[str, ...]) -> dict[str, Any]:
    """Return an entry with the values that it inherits from its base; `seen` holds the entries that led to it."""
    entry = dict(entries[name] or {})
    if "base" not in entry:
        return entry
    base, path = entry.pop("base"), f"{section}.{name}.base"
    if not isinstance(base, str) or base not in entries:
        raise problem(path, f"{show_value(base)} is not one of the {section}", allowed=sorted(entries), name=base)
    if base in (*seen, name):
        raise problem(path, f"goes in a circle: {' -> '.join((*seen, name, base))}")
    return _inherit(section, entries, base, (*seen, name)) | entry


def _gather(entry: dict[str, Any], path: str, kind: str, fields: set[str], label: str) -> dict[str, Any]:
    """Return an entry with all keys but its fields moved into the component, whose name is the entry's by default."""
    if "name" in entry:
        raise problem(f"{path}.name", f"an entry's name is its key; write `{kind}:` for the component's name")
    component_name = entry.get(kind, label)
    if not isinstance(component_name, str):
        raise wrong_type(f"{path}.{kind}", component_name, "a component's name")
    options = {key: value for key, value in entry.items() if key not in fields}
    other = {key: value for key, value in entry.items() if key in fields}
    return other | {kind: {"name": component_name, **options}}


def _check_keys(path: str, entry: Any, allowed: Collection[str]) -> None:
    """Raise for an unknown key, and suggest the nearest key, which pydantic does not do."""
    if not isinstance(entry, Mapping):
        raise wrong_type(path, entry, "a mapping")
    for key in entry:
        if key not in allowed:
            raise unknown_key(path, key, allowed)
