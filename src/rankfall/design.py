"""The design of a network and of its training, as plain data: each field is declared here, once.

A field's type, its default and the string under it serve everywhere: the configuration is checked against them (`run/config/values.py`),
tables have a column for each (`report/schema.py`), and a field made by `part` declares a kind of component with its folder. The strings
are documentation: like comments, they do not affect keys.
"""

from __future__ import annotations

import ast
import functools
import inspect
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Annotated, Any, Literal, Protocol

# ruff: noqa: RUF009  (`part` and `another` make fields)

Size = Annotated[int, ">= 1", "<= 1000000"]
Count = Annotated[int, ">= 0", "<= 1000000"]
Positive = Annotated[float, "> 0"]


@dataclass(frozen=True, eq=False)
class Component:
    """A component by name, with options."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Component) and self._content == other._content

    def __hash__(self) -> int:
        return hash(self._content)

    @functools.cached_property
    def _content(self) -> tuple[str, str]:
        """Name and canonical options, in which 1, 1.0 and true differ, as in keys."""
        return self.name, canonical(self.options)

    def __str__(self) -> str:
        """Return `name`, or `name(option=value, ...)`, the form that tables use."""
        options = ", ".join(f"{name}={json.dumps(option)}" for name, option in sorted(self.options.items()))
        return f"{self.name}({options})" if options else self.name

    @staticmethod
    def parse(written: str | Mapping[str, Any]) -> Component:
        """Parse `name` or `{name: ..., option: value}`."""
        if isinstance(written, str):
            return Component(written)
        return Component(written["name"], {key: item for key, item in written.items() if key != "name"})


def canonical(value: Any) -> str:
    """Return canonical JSON, which is the same for equal values. Keys are its hashes."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False)


def part(folder: str, default: str, *, sized: bool = False) -> Any:
    """Declare a field that names a component. The field declares a kind of the same name, whose components are the files of `folder`.

    `sized`: a function of this kind receives the sizes and returns a module; otherwise only its options are bound.
    """
    return field(default=Component(default), metadata={"folder": folder, "sized": sized})


def another(kind: str) -> Any:
    """Declare a further field for a kind that another field declares; null by default."""
    return field(default=None, metadata={"kind": kind})


@dataclass(frozen=True)
class Task:
    """Makes the data. The entry's name is its component's name unless `task` says otherwise; other keys are its options."""

    name: str
    task: Component = field(metadata={"folder": "tasks"})
    """the component, by default the one with the entry's name"""


@dataclass(frozen=True)
class Architecture:
    """A composition of components, and sizes. In a cell, what no component reads is None."""

    name: str
    block: Component = part("nets/blocks", "attention")
    """how attention and MLP are put together"""
    attention: Component = part("nets/attentions", "multihead")
    """how tokens are mixed"""
    normaliser: Component = part("nets/normalisers", "softmax")
    """what turns scores into attention weights"""
    position: Component = part("nets/positions", "learned", sized=True)
    """how the network distinguishes positions"""
    mask: Component = part("nets/masks", "none")
    """which pairs of tokens may attend"""
    residual: Component = part("nets/residuals", "add")
    """how a sublayer's output is combined with its input"""
    mlp: Component = part("nets/mlps", "none", sized=True)
    """the feed-forward sublayer"""
    mlp_residual: Component | None = another("residual")
    """how the MLP's output is combined with its input; null: as residual"""
    norm: Component = part("nets/norms", "layer")
    """normalisation of states"""
    norm_placement: Literal["post", "pre"] = "post"
    """where the norm stands: after the residual (post) or before the sublayer (pre)"""
    embedding: Component = part("nets/embeddings", "auto", sized=True)
    """how inputs become vectors; auto: what the task needs"""
    head: Component = part("nets/heads", "auto", sized=True)
    """how vectors become outputs; auto: what the task needs"""
    sentinels: Component = part("nets/sentinels", "none", sized=True)
    """extra tokens that carry no input"""
    init: Component = part("nets/inits", "published")
    """how initial values are drawn"""
    depth: Size = 6
    """number of blocks"""
    heads: Size = 2
    """attention heads of a block"""
    width: Size = 48
    """dimension of a token's vector"""
    head_width: Size | None = None
    """dimension of a head; null: width / heads"""
    mlp_width: Size | None = None
    """hidden dimension of the MLP; null: 4 * width"""


@dataclass(frozen=True)
class Training:
    """How a network is trained; `epochs: 0` leaves it at initialisation."""

    name: str
    objective: Component = part("train/objectives", "auto")
    """the loss that is minimised, and its metrics; auto: what the task needs"""
    optimizer: Component = part("train/optimizers", "adam")
    """the optimiser"""
    lr: Positive = 1e-3
    """learning rate before the schedule"""
    weight_decay: Annotated[float, ">= 0"] = 0.0
    """weight decay, as the optimiser understands it"""
    clip: Positive | None = None
    """largest gradient norm; null: not clipped"""
    schedule: Component = part("train/schedules", "constant")
    """factor of the learning rate over epochs"""
    stop_loss: Positive | None = None
    """training stops below this mean loss of an epoch; null: never"""
    epochs: Count = 0
    """passes over the data; 0: left at initialisation"""
    batch: Size = 30
    """samples of a step"""
    shuffle: bool = True
    """whether an epoch's order of the data is drawn anew"""
    dropout: Annotated[float, ">= 0", "< 1"] = 0.0
    """probability that a value is dropped in training"""
    dtype: Literal["float32", "float64"] = "float32"
    """number format of training"""
    precision: Literal["full", "tf32", "bf16"] = "full"
    """number format of matrix products in training; full: that of dtype; tf32: on GPUs only"""


# Kind -> fields of an architecture that only its component reads. If the component ignores them as well, they are None in a cell.
UNREAD = {
    "attention": ("normaliser", "mask", "heads", "head_width"),
    "mlp": ("mlp_residual", "mlp_width"),
}


class Described(Protocol):
    """An object with a task, an architecture and a training."""

    @property
    def task(self) -> Task: ...
    @property
    def architecture(self) -> Architecture: ...
    @property
    def training(self) -> Training: ...


class Designed(Described, Protocol):
    """An object with a task, an architecture, a training and a seed, such as a cell."""

    @property
    def seed(self) -> int: ...


@functools.cache
def names(design: type) -> tuple[str, ...]:
    """Return the field names of `Task`, `Architecture` or `Training`, without `name`."""
    return tuple(item.name for item in fields(design) if item.name != "name")


def parts(design: type) -> Mapping[str, str]:
    """Return field -> kind for the fields that name a component."""
    return _parts(design)


@functools.cache
def _parts(design: type) -> Mapping[str, str]:
    metadata = {item.name: item.metadata for item in fields(design) if {"folder", "kind"} & item.metadata.keys()}
    return MappingProxyType({name: values.get("kind", name) for name, values in metadata.items()})


def components_of(architecture: Architecture) -> list[tuple[str, Component]]:
    """Return (kind, component) for all components of an architecture."""
    named = ((kind, getattr(architecture, field)) for field, kind in parts(Architecture).items())
    return [(kind, component) for kind, component in named if component is not None]


def field_declarations(*designs: type) -> dict[str, Mapping[str, Any]]:
    """Return kind -> metadata of its field, such as `folder`."""
    return {item.name: item.metadata for design in designs for item in fields(design) if "folder" in item.metadata}


def with_default(design: type, default: str) -> frozenset[str]:
    """Return the kinds whose default is a component of this name."""
    return frozenset(item.name for item in fields(design) if item.default == Component(default))


@functools.cache
def meanings(design: type) -> dict[str, str]:
    """Return field -> the string literal below its declaration."""
    (tree,) = ast.parse(inspect.getsource(design)).body
    assert isinstance(tree, ast.ClassDef)
    texts = {}
    for statement, text in zip(tree.body, tree.body[1:]):
        if isinstance(statement, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            texts[ast.unparse(statement.target)] = str(text.value.value)
    return texts


# kind -> component. The plan reads this too, since a measure's BUILDS lists only the parts that its networks add.
PLAIN: Mapping[str, str] = {
    "block": "attention",
    "attention": "multihead",
    "normaliser": "softmax",
    "position": "none",
    "mask": "none",
    "residual": "none",
    "mlp": "none",
    "norm": "none",
    "embedding": "linear",
    "head": "regression",
    "sentinels": "none",
    "init": "normal",
}


def attention_alone(name: str, **changes: Any) -> Architecture:
    """Return an architecture of one attention layer with one head, post-norm if it has norms, with these changes.

    It sets every field whose default could change.
    """
    parts: dict[str, Any] = {kind: Component(part) for kind, part in PLAIN.items()}
    return Architecture(
        **{"name": name, "norm_placement": "post", "depth": 1, "heads": 1, "width": 32, **parts, **changes}
    )
