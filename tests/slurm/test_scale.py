"""Ten thousand cells are tens to hundreds of jobs, whose requests are known within seconds."""

import re
import resource
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from checkout import CONFIG, changed
from runs import ClusterCheckout

from rankfall.run.plan import make_plan

CELLS = 10_000
LARGE = changed(
    CONFIG,
    tasks={"sorting": {}},
    architectures={
        name: {"normaliser": name, "mlp": mlp} for name, mlp in (("softmax", "gelu"), ("l2", "none"), ("relu2", "none"))
    }
    | {"san": {"residual": "none", "mlp": "none"}, "skip": {"mlp": "none", "position": "rope"}},
    trainings={"long": {"lr": 1.0e-3, "epochs": 30}},
    grid=[
        {
            "task": "sorting",
            "architecture": ["softmax", "l2", "relu2", "san", "skip"],
            "training": "long",
            "depth": "1..20",
            "seed": "0..99",
        }
    ],
    measures={"paths": {}},
    compute={"engine": "plain", "threads": 1, "shard_minutes": 20},
)


def requests(output: str, rule: str) -> list[dict[str, str]]:
    """What the jobs of a rule would ask SLURM for."""
    blocks = re.findall(rf"^rule {rule}:\n((?:    .*\n)+)", output, re.MULTILINE)
    lines = [re.search(r"resources: (.*)", block) for block in blocks]
    return [dict(part.split("=", 1) for part in line[1].split(", ")) for line in lines if line]


@pytest.mark.slow
def test_dry_run_of_ten_thousand_cells(tmp_path: Path) -> None:
    checkout = ClusterCheckout.make(tmp_path / "checkout", LARGE)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = checkout.run("--dry-run").output
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    # Processor time: what a waiting person sees on a machine that does nothing else.
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 20
    plan = make_plan(LARGE)
    assert len(plan.cells) == CELLS
    seconds = sum(cell.cost.seconds for cell in plan.cells)
    full = seconds / (60 * LARGE["compute"]["shard_minutes"])  # jobs, if all were as long as they may be
    train = requests(said, "train")
    assert 10 <= full <= len(train) <= 2 * full <= 256
    assert len(requests(said, "measure")) == len(train)
    for request in train:
        assert 15 < int(request["runtime"]) < 24 * 60
        assert 1500 < int(request["mem_mb"]) < 16_000
        assert request["slurm_extra"] == "--signal=TERM@120"
        assert "gres" not in request
    cells: Counter[Any] = Counter(cell.shard for cell in plan.cells)
    assert max(cells.values()) < CELLS / 10
