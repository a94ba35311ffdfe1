"""A run whose jobs see nothing but an object store: a real server, each job in an empty folder, and the tables of a local run."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from checkout import CONFIG, Checkout, changed
from cluster import or_skip, wait_for
from runs import SLOW
from swift_server import BUCKET, KEY, SECRET, Swift, swift
from test_gc import clean_bucket, plans  # noqa: F401

from rankfall.report.runs import differences
from rankfall.run.objects import find_objects

pytestmark = pytest.mark.slow
pytest.importorskip("s3fs", reason="needs rankfall[s3]")
pytest.importorskip("snakemake_storage_plugin_s3", reason="needs rankfall[s3]")

OWN = '''\
"""A normaliser of the project."""

import torch
from torch import Tensor


def cubes(logits: Tensor) -> Tensor:
    weights = logits.masked_fill(logits.isneginf(), 0.0).abs() ** 3 + 1e-3 * logits.isfinite()
    return weights / weights.sum(-1, keepdim=True)
'''


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Swift]:
    with or_skip("object store"), swift(tmp_path_factory.mktemp("swift")) as made:
        yield made


class StoredCheckout(Checkout):
    """A checkout, under git as a user's is, whose jobs run in empty folders."""

    server: Swift

    def prepare(self, server: Swift, prefix: str) -> None:
        import s3fs

        self.server = server
        profile = yaml.safe_load((self.folder / "workflow" / "profiles" / "kubernetes" / "config.yaml").read_text())
        profile |= {
            "executor": "emptyfolder",
            "default-storage-prefix": f"s3://{BUCKET}/{prefix}",
            "storage-s3-endpoint-url": server.endpoint,
            "seconds-between-status-checks": 1,
            "retries": 0,
            "jobs": 2,
        }
        profile.pop("container-image")
        (self.folder / "profile").mkdir()
        (self.folder / "profile" / "config.yaml").write_text(yaml.safe_dump(profile))
        self.jobs.mkdir()
        (self.folder / ".gitignore").write_text("results/\n.snakemake/\n__pycache__/\n")
        for words in (["init", "-q"], ["add", "-A"]):
            subprocess.run(["git", *words], cwd=self.folder, check=True, capture_output=True)
        s3fs.S3FileSystem(key=KEY, secret=SECRET, endpoint_url=server.endpoint).mkdirs(BUCKET, exist_ok=True)

    @property
    def jobs(self) -> Path:
        """Return the folder of the jobs' folders, which lies outside of the checkout."""
        return self.folder.with_name(f"{self.folder.name}.jobs")

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "rankfall.cli", "run", "--profile", "profile", *arguments]

    def environment(self) -> dict[str, str]:
        path = [str(self.folder / "src"), str(self.folder / "engine" / "src"), str(Path(__file__).parent)]
        secrets = {"SNAKEMAKE_STORAGE_S3_ACCESS_KEY": KEY, "SNAKEMAKE_STORAGE_S3_SECRET_KEY": SECRET}
        about = {"RANKFALL_TEST_FOLDERS": str(self.jobs), "PYTHONPATH": os.pathsep.join(path)}
        python = f"{Path(sys.executable).parent}{os.pathsep}"
        before = super().environment()
        return before | secrets | about | {"PATH": python + before["PATH"]}

    def run_all(self) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(), cwd=self.folder, env=self.environment(), capture_output=True, text=True, check=False
        )

    def objects(self, folder: str) -> dict[str, str]:
        """Return name of each object -> its time of writing."""
        objects = find_objects(self.results)
        assert objects is not None
        details = objects.system.find(objects.root, detail=True, prefix=f"{folder}/")
        return {name.removeprefix(f"{objects.root}/"): str(about["LastModified"]) for name, about in details.items()}

    def job_folders(self) -> list[str]:
        return sorted(path.name for path in self.jobs.iterdir() if path.is_dir())


@pytest.fixture
def stored(server: Swift, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StoredCheckout:
    monkeypatch.setenv("SNAKEMAKE_STORAGE_S3_ACCESS_KEY", KEY)
    monkeypatch.setenv("SNAKEMAKE_STORAGE_S3_SECRET_KEY", SECRET)
    made = StoredCheckout.make(tmp_path / "checkout")
    (made.folder / "lab.py").write_text(OWN)
    made.prepare(server, tmp_path.name)
    return made


def check_same_tables(checkout: Checkout, local: Checkout) -> None:
    names = sorted(path.stem for path in (local.results / "tables").glob("*.parquet"))
    assert {"cells", "training", "paths"} <= set(names)
    for name in names:
        assert not differences(checkout.table(name), local.table(name))


def test_a_killed_job_loses_only_what_is_unfinished_and_another_machine_finds_all(
    stored: StoredCheckout, tmp_path: Path
) -> None:
    """Kill a job with a component of the user's: only what is unfinished is lost, and another machine makes the tables of a local run."""
    config = changed(SLOW, measures=CONFIG["measures"])
    config["architectures"]["soft"]["normaliser"] = "lab:cubes"
    stored.configure(config)
    local = Checkout.make(tmp_path / "local", config)
    (local.folder / "lab.py").write_text(OWN)
    local.run()

    process = stored.start()
    wait_for("the plan", lambda: (stored.results / "objects.json").exists(), 300)
    wait_for("a finished cell and a checkpoint", lambda: begun(stored), 500, 0.05)
    os.killpg(training(stored), signal.SIGKILL)
    assert stored.finish(process).code != 0
    finished, folders = stored.objects("store/stacks"), stored.job_folders()
    assert 0 < len(finished) < 3
    done = stored.run_all()
    assert done.returncode == 0, done.stdout + done.stderr
    check_same_tables(stored, local)
    now = stored.objects("store/stacks")
    assert {name: now[name] for name in finished} == finished, "finished cells were trained again"
    assert len(now) == 3
    assert not stored.objects("store/checkpoints")
    logs = [path.read_text() for path in (stored.results / "logs" / "train").rglob("*.log")]
    assert any("resuming a stack" in log for log in logs)
    assert len(stored.job_folders()) == len(folders) + 2  # training again, and measuring
    assert {name.partition(".")[0] for name in stored.job_folders()} == {"train", "measure"}
    assert not (stored.results / "store" / "stacks").exists()

    # On another machine, the bucket is all there is.
    before, jobs = stored.objects("store") | stored.objects("work"), stored.job_folders()
    shutil.rmtree(stored.results)
    shutil.rmtree(stored.folder / ".snakemake")
    elsewhere = stored.run_all()
    assert elsewhere.returncode == 0, elsewhere.stdout + elsewhere.stderr
    check_same_tables(stored, local)
    assert stored.job_folders() == jobs
    assert stored.objects("store") | stored.objects("work") == before


@pytest.mark.usefixtures("plans")
def test_a_bucket_is_cleaned(server: Swift, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import s3fs

    monkeypatch.setenv("SNAKEMAKE_STORAGE_S3_ACCESS_KEY", KEY)
    monkeypatch.setenv("SNAKEMAKE_STORAGE_S3_SECRET_KEY", SECRET)
    s3fs.S3FileSystem(key=KEY, secret=SECRET, endpoint_url=server.endpoint).mkdirs(BUCKET, exist_ok=True)
    clean_bucket(f"s3://{BUCKET}/clean", server.endpoint, tmp_path, monkeypatch)


def begun(stored: StoredCheckout) -> bool:
    """Return whether a cell is finished and the next one has a checkpoint; that of the finished one is older than its stack."""
    finished, checkpoints = stored.objects("store/stacks"), stored.objects("store/checkpoints")
    return bool(finished and checkpoints) and max(checkpoints.values()) > max(finished.values())


def training(stored: StoredCheckout) -> int:
    """Return the process group of the training job."""
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "cmdline").read_bytes().decode(errors="replace").split("\0")
            cwd = str((path / "cwd").readlink())
        except OSError:
            continue
        if cwd.startswith(str(stored.jobs)) and words[1:4] == ["-m", "rankfall.cli", "train"]:
            return os.getpgid(int(path.name))
    raise AssertionError("no training process")
