"""The JSON schema of a configuration, for editors and for Snakemake, and the page of the documentation with every field and its default,
generated from the types in `types.py` and `design.py`.

The schema checks types only. A component name is any text, since a new file is a new component, and `rankfall plan` checks it. Defaults
appear only in descriptions, because a validator that fills them in would override values that an entry inherits from its base.
"""

import json
from collections.abc import Mapping
from typing import Any

from rankfall.design import Architecture, Component, Training, names
from rankfall.run.config.types import Compute, Config, Crossing, Figure, Measure
from rankfall.run.config.values import COMPONENT, WRITTEN, Entry, model_of

# entry whose other keys are options of a component -> kind of the component
FREE = {"TaskEntry": "task", "Measure": "measure", "Figure": "figure"}
WITH_BASE = ("ArchitectureEntry", "TrainingEntry")
RANGE = {"type": "string", "pattern": r"^\d+\.\.\d+$"}
# pydantic does not translate these bounds
LIMITS = {"gt": "exclusiveMinimum", "ge": "minimum", "lt": "exclusiveMaximum", "le": "maximum"}
EXPONENT = {"type": "string", "pattern": r"^[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$"}


def config_schema() -> dict[str, Any]:
    """Return the schema as plain data."""
    schema = Config.model_json_schema()
    definitions = schema["$defs"]
    for name, kind in FREE.items():
        definitions[name]["additionalProperties"] = True
        definitions[name]["properties"][kind] = {
            "type": "string",
            "description": "the component's name, by default the entry's",
        }
        definitions[name].pop("required", None)
    crossing = definitions["Crossing"]
    fields = {name: definitions["ArchitectureEntry"]["properties"][name] for name in names(Architecture)}
    fields |= {f"training.{name}": definitions["TrainingEntry"]["properties"][name] for name in names(Training)}
    labels = {name: {"type": "string"} for name in ("task", "architecture", "training")}
    axes = {
        name: _axis(field) for name, field in {**labels, "seed": {"type": "integer", "minimum": 0}, **fields}.items()
    }
    axes = {name: {**crossing["properties"].get(name, {}), **axis} for name, axis in axes.items()}
    definitions |= {f"axis.{name}": axis for name, axis in axes.items()}  # defined once, since three places refer to it
    axes = {name: {"$ref": f"#/$defs/axis.{name}"} for name in axes}
    options: dict[str, Any] = {r"^task\..+": {}}
    inner = {"type": "object", "properties": axes, "patternProperties": options, "additionalProperties": False}
    lists = {
        name: {"type": "array", "items": inner, "description": crossing["properties"][name]["description"]}
        for name in ("exclude", "include")
    }
    crossing |= {"properties": axes | lists, "patternProperties": options, "additionalProperties": False}
    for name in WITH_BASE:
        base = {"type": "string", "description": "another entry, whose values are taken where none are given here"}
        definitions[name]["properties"]["base"] = base
    for section in ("tasks", "architectures", "trainings", "measures", "figures"):
        entry = schema["properties"][section]["additionalProperties"]
        schema["properties"][section]["additionalProperties"] = {"anyOf": [entry, {"type": "null"}]}
    schema["$defs"] = definitions = {"Component": {**COMPONENT, "description": WRITTEN}, **definitions}
    finished = _finish(_share(schema))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **finished}


def as_text() -> str:
    """Return the file's content."""
    return json.dumps(config_schema(), indent=2) + "\n"


def _axis(field: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of an axis: a value, a range, or a list of them."""
    annotations = {key: item for key, item in field.items() if key in ("description", "default")}
    scalar = {key: item for key, item in field.items() if key not in ("title", *annotations)}
    return {
        **annotations,
        "anyOf": [scalar, RANGE, {"type": "array", "items": {"anyOf": [scalar, RANGE]}, "minItems": 1}],
    }


def _share(node: Any) -> Any:
    """Replace the schema of components by references, so that it is written once."""
    if isinstance(node, list):
        return [_share(item) for item in node]
    if not isinstance(node, dict):
        return node
    if COMPONENT.items() <= node.items() and node.get("description") != WRITTEN:
        return {"$ref": "#/$defs/Component", **{key: item for key, item in node.items() if key not in COMPONENT}}
    return {key: _share(item) for key, item in node.items()}


def _finish(node: Any) -> Any:
    """Remove titles, move defaults into descriptions, and allow numbers such as 1e-5, which YAML 1.1 reads as text."""
    if isinstance(node, list):
        return [_finish(item) for item in node]
    if not isinstance(node, dict):
        return node
    node = {key: _finish(item) for key, item in node.items() if key != "title" or not isinstance(item, str)}
    if "default" in node and ("description" in node or "type" in node or "anyOf" in node):
        default = node.pop("default")
        words = default["name"] if isinstance(default, dict) and "name" in default else json.dumps(default)
        if default != {}:
            node["description"] = f"{node.get('description', '')} (default: {words})".strip()
    if node.get("type") == "number":
        node = {LIMITS.get(key, key): item for key, item in node.items()}
        number = {key: node.pop(key) for key in list(node) if key != "description"}
        node["anyOf"] = [number, EXPONENT]
    return node


INTRODUCTION = """# Every field of a configuration

One YAML file is the whole configuration. Its sections hold named entries, and each entry has the fields below. This page is generated from
the code. `config.yaml` explains each key where it first appears.

Any field of an architecture is an axis of the grid, and so is `training.lr` or `task.length`: a list of values makes a cell of each. One
line sweeps the learning rate: `training.lr: [1.0e-3, 3.0e-3, 1.0e-2]`. The scorecard then has a setting for each rate, and one more, in
which each architecture has the rate of its highest mean test accuracy. Its label says from how many rates it was chosen.
"""
SECTIONS: dict[str, type[Entry]] = {
    "Sections": Config,
    "`architectures:`": model_of(Architecture),
    "`trainings:`": model_of(Training),
    "`grid:`": Crossing,
    "`measures:`": Measure,
    "`figures:`": Figure,
    "`compute:`": Compute,
}


def document_fields() -> str:
    """Return the text of the page."""
    parts = [INTRODUCTION]
    for title, entry in SECTIONS.items():
        lines = ["| field | meaning | default |", "|---|---|---|"]
        for name, field in entry.model_fields.items():
            if name != "name" or entry is Config:
                default_in_text = "by default" in (field.description or "")
                default = ("" if default_in_text else "needed") if field.is_required() else write_default(field.default)
                lines.append(f"| `{name}` | {(field.description or '').replace('|', chr(92) + '|')} | {default} |")
        parts.append(f"## {title}\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


def write_default(value: Any) -> str:
    """Return a default as YAML; an empty text for an empty section."""
    if isinstance(value, Component):
        return f"`{value}`"
    return "" if isinstance(value, Entry) or value in ({}, []) else f"`{json.dumps(value)}`"
