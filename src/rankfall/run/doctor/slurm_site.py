"""The two sides that `slurm` compares: what a profile requests and what a SLURM cluster answers."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rankfall.errors import RankfallError


def read_profile(folder: Path) -> Mapping[str, Any]:
    import yaml

    try:
        found = yaml.safe_load((folder / "config.yaml").read_text(encoding="utf-8"))
    except OSError as error:
        raise RankfallError(f"--profile: cannot read {folder / 'config.yaml'}: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise RankfallError(
            f"--profile: {folder / 'config.yaml'} is not YAML: {' '.join(str(error).split())}"
        ) from error
    if not isinstance(found, dict):
        raise RankfallError(f"--profile: {folder / 'config.yaml'} is not a mapping of options")
    return found


def read_resources(settings: Mapping[str, Any], *names: str) -> dict[str, str]:
    """Return the values of a resource, for all rules and for single rules, as {line of the profile: value}."""
    places = {"default-resources": settings.get("default-resources") or {}}
    places |= {f"set-resources: {rule}": one for rule, one in (settings.get("set-resources") or {}).items()}
    return {
        f"{place}: {name}": str(values[name]).strip("'\"")
        for place, values in places.items()
        for name in names
        if isinstance(values, dict) and name in values
    }


def ask(*command: str) -> tuple[int, str]:
    """Run a command and return its exit code and its output."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return 1, str(error)
    return done.returncode, (done.stdout or done.stderr).strip()
