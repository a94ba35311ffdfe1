"""Read the `statement.yaml` of a claim's folder, and find the claims that share a user's experiment."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from rankfall import components
from rankfall.errors import RankfallError

STATEMENT = "statement.yaml"
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml's loader is ten times as fast


def read_statement(path: Path) -> dict[str, Any]:
    """Return the fields of a statement."""
    try:
        fields = yaml.load(path.read_bytes(), LOADER)
    except FileNotFoundError:
        raise RankfallError(
            f"{path} is missing\nA claim has statement.yaml and rule.py in a folder of its name"
        ) from None
    except yaml.YAMLError as error:
        raise RankfallError(f"{path} is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(fields, dict):
        raise RankfallError(f"{path}: expected keys such as `says: ...`, found {type(fields).__name__}")
    return fields


def claims_sharing(modules: Iterable[str]) -> Iterator[str]:
    """Yield the users' claims that share the experiment of one of these modules, from the folders beside it."""
    for module in modules:
        parent, _, name = module.rpartition(".")
        location = components.locate("measure", module)
        if location is None or location.module == module:  # a single file
            continue
        for path in sorted(location.file.parent.parent.glob(f"*/{STATEMENT}")):
            if path.parent.name != name and read_statement(path).get("experiment") == name:
                yield f"{parent}.{path.parent.name}"
