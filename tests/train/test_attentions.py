"""Every attention goes the whole way, from a configuration to trained networks and their rows; one's own too."""

import json
from pathlib import Path
from typing import Any

import pytest

from rankfall import cli
from rankfall.report import tables
from rankfall.run.plan import make_plan

OWN = '''
"""Each token takes the mean of all, through one map."""
from torch import nn
from rankfall.nets.dropout import no_dropout
from rankfall.nets.primitives import Linear, Sizes

IGNORES = ("normaliser", "mask", "heads", "head_width")

class Mean(nn.Module):
    def __init__(self, sizes: Sizes, position, normaliser, mask, site):
        super().__init__()
        self.map = Linear(sizes, sizes.width, sizes.width, "value")

    def forward(self, x, drop=no_dropout):
        return self.map(x - x.mean(-2, keepdim=True))
'''


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "meanlab.py").write_text(OWN)

    def commands(config: dict[str, Any], measures: list[str]) -> dict[str, Any]:
        Path("config.json").write_text(json.dumps(config))
        plan, found = make_plan(config), {}
        for task, shard in plan.shards:
            common = ["--config", "config.json", "--task", task, "--shard", shard]
            assert cli.main(["train", *common, "--out", "cells.parquet"]) == 0
            for name in measures:
                assert cli.main(["measure", *common, "--measure", name, "--out", f"{name}.parquet"]) == 0
        for name in ("cells", *measures):
            found[name] = tables.read_frame(Path(f"{name}.parquet"), name)
        return found

    return commands


ATTENTIONS = ["multihead", "linear", {"name": "gau", "key_width": 16}, "meanlab:Mean"]


@pytest.mark.slow
def test_from_configuration_to_rows(run: Any) -> None:
    config = {
        "tasks": {"sorting": {"train": 300, "test": 100, "length": 5, "symbols": 6}},
        "architectures": {"net": {"depth": 2, "width": 24, "mlp": "gelu"}},
        "trainings": {"short": {"epochs": 12, "batch": 20, "lr": 3e-3}},
        "grid": [
            {"task": "sorting", "architecture": "net", "training": "short", "seed": 0, "attention": ATTENTIONS},
        ],
        "measures": {"residuals": {"samples": 2, "best": False}, "law": {"samples": 2}},
    }
    found = run(config, ["residuals", "law"])
    cells = found["cells"].set_index(found["cells"].attention.str.partition("(")[0])
    assert set(cells.status) == {"done"}
    for name in ("multihead", "linear"):
        assert cells.normaliser.isna()[name] == (name == "linear")
    trained = cells.test_accuracy - cells.chance
    assert (trained > 0.1).all(), trained
    law = found["law"]
    assert set(law.method) == {"centred"} and set(law.attention) == set(cells.attention)
    assert set(found["residuals"].attention) == set(cells.attention)
    assert (found["residuals"].value >= 0).all()
