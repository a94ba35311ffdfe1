"""The probe's matrix shows what the tables have."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from helpers import cells

from rankfall.measure.context import Context
from rankfall.position.probe import figure as module
from rankfall.position.probe.measure import probe as measured
from rankfall.report import tables
from rankfall.report.rows import cell_columns

CHOICE: dict[str, Any] = {
    "normalisers": ["softmax", "l2"],
    "positions": ["none", "symmetric", "toeplitz"],
    "masks": ["none", {"name": "local", "window": 2}],
    "sentinels": ["none", "bos"],
    "tokens": 8,
    "draws": 3,
}
LAST = {"length": 8, "asked": 8, "beyond": False, "theory_rows": 8, "argument": "", "untrained_rows": 8, "trained_rows": 8,
        "chance": 0.1, "ceiling": 1.0, "loss": 0.0, "agreement": "agree", "agreement_reason": ""}  # fmt: skip


@pytest.fixture
def read(tmp_path: Path) -> Callable[[str], pd.DataFrame]:
    rows = []
    for seed, passes in enumerate((True, True, False)):
        (cell,) = cells(
            architecture={"position": "toeplitz", "normaliser": "l2", "mask": {"name": "local", "window": 2}}, grid={"seed": seed}
        )  # fmt: skip
        about = cell_columns(cell, {"status": "done", "reason": "", "device": "cpu", "stack": "s"})
        rows.append(about | LAST | {"accuracy": float(passes), "passes": passes})
        rows.append(about | LAST | {"accuracy": 0.0, "passes": False, "length": 16, "beyond": True})
        rows.append(about | LAST | {"accuracy": 0.0, "passes": False, "length": 4})
    tables.write("probe_trained", rows, tmp_path / "probe_trained.parquet")
    tables.write("probe", measured(Context(), **CHOICE), tmp_path / "probe.parquet")
    return lambda name: tables.read_frame(tmp_path / f"{name}.parquet", name)


def test_trained_networks_stand_in_their_square_at_the_trained_length(read: Callable[[str], pd.DataFrame]) -> None:
    shown = read("probe")
    learned, keys = module.match_trained(read("probe_trained"), shown)
    ((index, seeds),) = learned.items()
    assert len(keys) == 3
    row = shown.loc[index]
    assert (row.normaliser, row.position, row["mask"], row.sentinels) == ("l2", "toeplitz", "local(window=2)", "none")
    assert seeds == (2, 3)
