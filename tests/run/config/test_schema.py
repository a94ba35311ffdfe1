"""Guards the JSON schema: it is that of the types, accepts what the plan accepts and refuses what has no business in a config."""

import json
from pathlib import Path

import jsonschema
import pytest
import yaml
from plans import changed

from rankfall.run.config.schema import as_text, config_schema

ROOT = Path(__file__).parents[3]
VALIDATOR = jsonschema.Draft202012Validator(config_schema())


def test_file_is_up_to_date() -> None:
    path = ROOT / "workflow" / "schemas" / "config.schema.json"
    assert path.read_text() == as_text(), f"run: rankfall plan --schema {path.relative_to(ROOT)}"


@pytest.mark.parametrize(
    "path", [ROOT / "config.yaml", *sorted((ROOT / "workflow" / "presets").glob("*.yaml"))], ids=lambda p: p.name
)
def test_our_own_configurations_fit(path: Path) -> None:
    VALIDATOR.validate(yaml.safe_load(path.read_text()))


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
            assert not (isinstance(node.get("default"), str | int | float | bool | None) and "default" in node), node
            for item in node.values():
                walk(item)
        elif isinstance(node, list):
            for item in node:
                walk(item)

    walk(json.loads(as_text()))
