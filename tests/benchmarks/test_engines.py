"""Guards the comparison of two runs by engine: means over seeds are held against the deviation over seeds, and nothing is passed over."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))  # benchmarks are not installed

from benchmarks import engines

SEEDS = 4
OFF = np.array([-3.0, -1.0, 1.0, 3.0])  # of seeds; deviation 2.58


def run(folder: Path, change: dict[str, list[float]] | None = None, drop: int = 0) -> Path:
    """Accuracies of two architectures at two depths; `change` is added, by architecture, to the seeds at depth 2."""
    rows = [
        {"key": f"{folder.name} {a} {d} {s}", "task": "sorting", "architecture": a, "training": "short", "depth": d}
        | {"seed": s, "status": "done", "reason": "", "steps": 10, "seconds": 1.0}
        | {"test_accuracy": 10 * d + OFF[s] + ((change or {}).get(a, [0.0] * SEEDS)[s] if d == 2 else 0.0)}
        for a in ("SAN", "SAN+skip")
        for d in (1, 2)
        for s in range(SEEDS)
    ]
    (folder / "tables").mkdir(parents=True)
    pd.DataFrame(rows[drop:]).to_parquet(folder / "tables" / "cells.parquet")
    return folder


def test_equal_runs_are_equal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(run(tmp_path / "a"), run(tmp_path / "b")) == 0
    assert capsys.readouterr().out.count("equal (8 rows)") == 2


def test_means_are_held_against_the_deviation_over_seeds(tmp_path: Path) -> None:
    """Seeds may change places: the means are what figures show."""
    one, other = run(tmp_path / "a"), run(tmp_path / "b", {"SAN": [6.0, 2.0, -2.0, -6.0], "SAN+skip": [1.0] * SEEDS})
    found = {apart.architecture: apart for apart in engines.compared(one, other)[0] if apart.column == "test_accuracy"}
    assert found["SAN"].single == 6.0 and found["SAN"].means == 0.0 and found["SAN"].ratio == 0.0
    skip = found["SAN+skip"]
    assert (skip.rows, skip.single, skip.means, skip.missing) == (8, 1.0, 1.0, 0)
    assert skip.deviation == pytest.approx(np.std(OFF, ddof=1)) and skip.ratio == pytest.approx(1 / 2.581989)
    bounds = [engines.limit(skip, None, bound, times=3.0) for bound in (0.4, 0.38)]
    assert not engines.beyond(skip, bounds[0]) and engines.beyond(skip, bounds[1])


@pytest.mark.parametrize(
    ("change", "drop", "line"),
    [
        ({"SAN": [9.0] * SEEDS}, 0, "means 9 apart, 3.49 of the deviation 2.58 over seeds; single rows 9  BEYOND"),
        ({"SAN": [float("nan"), 0.0, 0.0, 0.0]}, 0, "1 rows have a number in one run alone  BEYOND"),
        ({}, 1, "cells: 1 rows are in one run alone"),
    ],
)
def test_what_is_apart_is_said_and_ends_with_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict[str, list[float]], drop: int, line: str
) -> None:
    assert ended(run(tmp_path / "a"), run(tmp_path / "b", change, drop)) == 1
    assert line in capsys.readouterr().out


def ended(*runs: Path) -> int:
    """The command's exit code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["engines", *map(str, runs)])
        return engines.main()
