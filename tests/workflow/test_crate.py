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

LICENSE, CRATE = "https://spdx.org/licenses/CC-BY-4.0", "https://w3id.org/ro/crate/1.1"
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
    assert f"{CRATE}/context" in described["@context"]
    entities = {entity["@id"]: entity for entity in described["@graph"]}
    assert len(entities) == len(described["@graph"])
    return entities, files


def list_references(value: Any) -> list[str]:
    if isinstance(value, list):
        return [name for item in value for name in list_references(item)]
    return [value["@id"]] if isinstance(value, dict) else []


@pytest.mark.slow
def test_a_crate_has_everything_and_says_what_it_is(tmp_path: Path) -> None:
    checkout, target = Checkout.make(tmp_path / "checkout"), tmp_path / "crate.zip"
    (checkout.folder / "lab").mkdir()
    (checkout.folder / "lab" / "normaliser.py").write_text(NORMALISER)
    soft = CONFIG["architectures"]["soft"] | {"normaliser": "lab.normaliser:halved"}
    grid = [CONFIG["grid"][0] | {"architecture": "soft", "seed": 0}]
    checkout.configure(changed(CONFIG, architectures={"soft": soft}, grid=grid))
    checkout.run()

    def publish(*words: str) -> int:
        command = [sys.executable, "-m", "rankfall.cli", "publish", "--config", "config.yaml", "--crate", str(target)]
        environment = checkout.environment() | {"PYTHONPATH": "src:engine/src:."}
        return subprocess.run([*command, *words], cwd=checkout.folder, env=environment, check=False).returncode

    table = checkout.results / "tables" / "cells.parquet"
    original = table.read_bytes()
    table.write_bytes(b"edited")
    assert publish("--license", LICENSE) == 0
    entities, files = read_crate(target)
    assert files["results/tables/cells.parquet"] == original, "not what somebody made of it"
    assert files["sources/lab/normaliser.py"].decode() == NORMALISER
    assert files["Snakefile"] == (ROOT / "Snakefile").read_bytes()
    assert json.loads(files["config.json"])["name"] == "tiny"
    for name, content in files.items():
        assert entities[name]["sha256"] == hashlib.sha256(content).hexdigest()
    root, run, about = (entities[name] for name in ("./", "#run", "ro-crate-metadata.json"))
    assert sorted(list_references(root["hasPart"])) == sorted(files)
    assert sorted(list_references(run["object"]) + list_references(run["result"])) == sorted(files)
    assert about["about"] == {"@id": "./"} and {"@id": CRATE} in about["conformsTo"]
    assert {"name", "description", "datePublished", "license"} <= set(root) and root["license"] == {"@id": LICENSE}
    assert run["instrument"] == root["mainEntity"] == {"@id": "Snakefile"}
    assert "ComputationalWorkflow" in entities["Snakefile"]["@type"]
    assert run["actionStatus"].endswith("/CompletedActionStatus")
    values = (value for entity in entities.values() for value in entity.values())
    assert {name for value in values for name in list_references(value)} - set(entities) == {CRATE}
    assert entities["results/figures/paths.png"]["description"] == files["results/figures/paths.rst"].decode()
    software = {entity["name"] for entity in entities.values() if entity["@type"] == "SoftwareApplication"}
    assert {"torch", "python"} <= software

    # A crate of a run that lacks a figure says so.
    for file in (checkout.results / "work" / "figure").rglob("*.*"):
        file.unlink()
    log = next((checkout.results / "logs" / "figure").rglob("*.log"))
    log.write_text("error: no room\n")
    assert publish() == 1
    entities, files = read_crate(target)
    root, run = entities["./"], entities["#run"]
    assert not [name for name in files if "figures" in name]
    assert "Not made: figure paths: no room" in root["description"] and isinstance(root["license"], str)
    assert run["actionStatus"].endswith("/FailedActionStatus")
