"""Guards the presets, and the JSON schema: it is that of the types, accepts what the plan accepts and refuses what it refuses."""

import json
from pathlib import Path

import jsonschema
import pytest
import yaml
from plans import changed

from rankfall.run.config.schema import as_text, config_schema
from rankfall.run.plan import make_plan

ROOT = Path(__file__).parents[3]
PRESETS = [ROOT / "config.yaml", *sorted((ROOT / "workflow" / "presets").glob("*.yaml"))]
VALIDATOR = jsonschema.Draft202012Validator(config_schema())


def test_file_is_up_to_date() -> None:
    path = ROOT / "workflow" / "schemas" / "config.schema.json"
    assert path.read_text() == as_text(), f"run: rankfall plan --schema {path.relative_to(ROOT)}"


def test_our_own_configurations_fit() -> None:
    for path in PRESETS:
        VALIDATOR.validate(yaml.safe_load(path.read_text()))


@pytest.mark.parametrize(
    "path",
    [pytest.param(p, id=p.stem, marks=[pytest.mark.long] * (p.stem not in ("smoke", "config"))) for p in PRESETS],
)
def test_presets_can_be_planned_and_keep_to_their_own_folder(path: Path) -> None:
    plan = make_plan(path)
    assert plan.cells or all(measure.needs != "cells" for measure in plan.measures.values())
    assert plan.figures
    assert plan.config.results == ("results" if path.name == "config.yaml" else f"results/{path.stem}")


BAD = {
    "unknown field": ("architectures/san/normalizer", "softmax"),
    "unknown axis": ("grid/0/dept", [1]),
    "text": ("architectures/san/depth", "three"),
    "negative": ("architectures/san/width", -1),
    "null component": ("architectures/san/mask", None),
    "empty axis": ("grid/0/depth", []),
}


@pytest.mark.parametrize("name", BAD)
def test_refuses(name: str) -> None:
    assert not VALIDATOR.is_valid(changed(*BAD[name]))


def test_holds_no_defaults_that_a_validator_could_fill_in() -> None:
    """Filled in, they would override what an entry inherits from its base."""

    def walk(node: object) -> None:
        if isinstance(node, dict):
            assert "default" not in node or isinstance(node["default"], dict | list), node
        for item in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
            walk(item)

    walk(json.loads(as_text()))
