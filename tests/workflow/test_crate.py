"""Guards the crate of a run: whole, described as RO-Crate 1.1 asks, and with a component that no release of Rankfall has."""

import hashlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from checkout import CONFIG, ROOT, Checkout, changed

pytestmark = pytest.mark.slow
LICENSE = "https://spdx.org/licenses/CC-BY-4.0"
NORMALISER = '''"""Half of the weight on the token itself."""

import torch
from torch import Tensor


def halved(logits: Tensor) -> Tensor:
    return 0.5 * logits.softmax(-1) + 0.5 * torch.eye(logits.shape[-1], dtype=logits.dtype)
'''


def read_crate(path: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return the entities by their @id, and the files."""
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    described = json.loads(files.pop("ro-crate-metadata.json"))
    assert "https://w3id.org/ro/crate/1.1/context" in described["@context"]
    entities = {entity["@id"]: entity for entity in described["@graph"]}
    assert len(entities) == len(described["@graph"])
    return entities, files


def references(value: Any) -> list[str]:
    if isinstance(value, list):
        return [name for one in value for name in references(one)]
    return [value["@id"]] if isinstance(value, dict) else []


def test_a_crate_has_everything_and_says_what_it_is(tmp_path: Path) -> None:
    checkout, target = Checkout.make(tmp_path / "checkout"), tmp_path / "crate.zip"
    (checkout.folder / "lab").mkdir()
    (checkout.folder / "lab" / "normaliser.py").write_text(NORMALISER)
    own = {"soft": CONFIG["architectures"]["soft"] | {"normaliser": "lab.normaliser:halved"}}
    grid = [{"task": "sorting", "architecture": "soft", "training": "short", "seed": 0}]
    checkout.configure(changed(CONFIG, architectures=own, grid=grid))
    checkout.run()

    def publish(*arguments: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "rankfall.cli", "publish", "--config", "config.yaml", "--crate", str(target)]
        path = ":".join(map(str, (checkout.folder / "src", checkout.folder / "engine" / "src", checkout.folder)))
        environment = checkout.environment() | {"PYTHONPATH": path}
        return subprocess.run(
            [*command, *arguments], cwd=checkout.folder, env=environment, capture_output=True, text=True, check=False
        )

    table = checkout.results / "tables" / "cells.parquet"
    (original, _) = table.read_bytes(), table.write_bytes(b"edited")
    done = publish("--license", LICENSE)
    assert done.returncode == 0, done.stderr
    entities, files = read_crate(target)
    assert files["results/tables/cells.parquet"] == original, "not what somebody made of it"
    assert files["sources/lab/normaliser.py"].decode() == NORMALISER
    assert files["Snakefile"] == (ROOT / "Snakefile").read_bytes()
    assert json.loads(files["config.json"])["name"] == "tiny"
    for name, content in files.items():
        assert entities[name]["sha256"] == hashlib.sha256(content).hexdigest()
    root, run, about = (entities[name] for name in ("./", "#run", "ro-crate-metadata.json"))
    assert sorted(references(root["hasPart"])) == sorted(files)
    assert sorted(references(run["object"]) + references(run["result"])) == sorted(files)
    assert about["about"] == {"@id": "./"} and {"@id": "https://w3id.org/ro/crate/1.1"} in about["conformsTo"]
    assert {"name", "description", "datePublished", "license"} <= set(root) and root["license"] == {"@id": LICENSE}
    assert run["instrument"] == root["mainEntity"] == {"@id": "Snakefile"}
    assert "ComputationalWorkflow" in entities["Snakefile"]["@type"] and run["actionStatus"].endswith(
        "/CompletedActionStatus"
    )
    named = {name for one in entities.values() for value in one.values() for name in references(value)}
    assert named - set(entities) == {"https://w3id.org/ro/crate/1.1"}
    assert entities["results/figures/paths.png"]["description"] == files["results/figures/paths.rst"].decode()
    assert {"torch", "python"} <= {one["name"] for one in entities.values() if one["@type"] == "SoftwareApplication"}

    # A crate of a run that lacks a figure says so. One without any result is refused.
    for file in (checkout.results / "work" / "figure").rglob("*.*"):
        file.unlink()
    log = next((checkout.results / "logs" / "figure").rglob("*.log"))
    log.write_text("error: no room\n")
    assert publish().returncode == 1
    entities, files = read_crate(target)
    assert not [name for name in files if "figures" in name]
    assert "Not made: figure paths: no room" in entities["./"]["description"]
    assert entities["#run"]["actionStatus"].endswith("/FailedActionStatus") and isinstance(
        entities["./"]["license"], str
    )
