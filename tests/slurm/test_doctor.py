"""Guards `rankfall doctor --slurm`: content with a profile that works, and for one that does not, what to change."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from checkout import ROOT
from cluster import Cluster

PROFILE = ROOT / "workflow" / "profiles" / "slurm"


def doctor(folder: Path, **changes: Any) -> tuple[int, dict[str, list[dict[str, str]]]]:
    """Return exit code, and findings by name, for the profile with some of its keys changed."""
    settings = yaml.safe_load((PROFILE / "config.yaml").read_text())
    for key, value in changes.items():
        settings[key.replace("_", "-")] = value
    profile = folder / "profile"
    profile.mkdir(exist_ok=True)
    (profile / "config.yaml").write_text(yaml.safe_dump(settings))
    command = [sys.executable, "-m", "rankfall.cli", "doctor", "--slurm", "--json", "--probe-seconds", "5"]
    done = subprocess.run(
        [*command, "--profile", str(profile), "--results", str(folder)], capture_output=True, text=True, check=False
    )
    assert done.stdout, done.stderr
    findings: dict[str, list[dict[str, str]]] = {}
    for check in json.loads(done.stdout):
        findings.setdefault(check["name"], []).append(check)
    return done.returncode, findings


def failed(findings: dict[str, list[dict[str, str]]], name: str) -> str:
    """Return the only finding of this name that is not fine."""
    (bad,) = [check for check in findings[name] if check["state"] != "ok"]
    return bad["text"]


@pytest.mark.slow
def test_content_with_a_profile_that_fits(cluster: Cluster, tmp_path: Path) -> None:
    code, findings = doctor(tmp_path)
    assert code == 0
    names = {"partition", "account", "gpu", "status", "preemption", "memory", "job", "shared", "clock"}
    assert names <= set(findings)
    assert {check["state"] for checks in findings.values() for check in checks} == {"ok"}, findings
    assert not list((tmp_path / "logs").iterdir()), "the probe leaves nothing behind"


@pytest.mark.slow
def test_says_what_to_change(cluster: Cluster, tmp_path: Path) -> None:
    code, findings = doctor(
        tmp_path,
        default_resources={"slurm_partition": "long", "slurm_account": "mine"},
        set_resources={"train": {"gres": "gpu:a100:1"}},
        slurm_status_command="sacct",
    )
    assert code == 1
    assert "'long', which does not exist: change it to one of main, urgent, gpu" in failed(findings, "partition")
    assert "default-resources: slurm_account" in failed(findings, "account")
    assert "--gres=gpu:a100:1 is refused" in failed(findings, "gpu") and "nodes have gpu:fake:2" in failed(
        findings, "gpu"
    )
    assert "set slurm-status-command: squeue" in failed(findings, "status")
    assert "sbatch refuses" in failed(findings, "job")


@pytest.mark.slow
def test_gpus_are_tried_in_their_partition(cluster: Cluster, tmp_path: Path) -> None:
    def state(asked: dict[str, Any]) -> str:
        (check,) = doctor(tmp_path, set_resources={"train": asked})[1]["gpu"]
        return f"{check['state']}: {check['text']}"

    assert state({"gpu": 2, "gpu_model": "fake", "slurm_partition": "gpu"}).startswith(
        "ok: set-resources: train: --gpus=fake:2"
    )
    assert state({"gpu": 1}).startswith("ok")
    assert state({"gpu": 3}).startswith("fail")
    assert state({"gpu": 1, "gpu_model": "a100"}).startswith("fail")
    assert state({"gpus": 1}) == "fail: set-resources: train: gpus does not reach sbatch: write gpu: 1 instead"


def test_without_slurm_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    code, findings = doctor(tmp_path)
    assert code == 1
    assert "run this on a login node" in failed(findings, "slurm")
