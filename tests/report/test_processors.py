"""Guards what rows and runs say of processors: kinds are told apart by what may change bits, and a mixture is named."""

from pathlib import Path

import pandas as pd
import pytest

from rankfall import cli
from rankfall.report import tables
from rankfall.report.processors import describe_mixture, find_kinds, find_kinds_of_run, join_processors

ZEN = "AMD EPYC, family 25 model 17, AVX512"
XEON = "Intel Xeon Platinum 8481C, family 6 model 143, AVX512"


@pytest.mark.parametrize(
    ("given", "count"),
    [
        ([ZEN, ZEN], 1),
        ([ZEN, ZEN.replace("EPYC", "EPYC 9654 96-Core")], 1),  # of one kind: only the name differs
        ([ZEN, ZEN.replace("AVX512", "AVX2")], 2),
        ([join_processors(ZEN, XEON)], 2),
        ([join_processors(ZEN, ZEN), None, float("nan")], 1),
        ([None], 0),
    ],
)
def test_kinds_are_told_apart_by_family_model_and_vectors(given: list, count: int) -> None:
    assert len(find_kinds(given)) == count
    said = describe_mixture(pd.DataFrame({"processor": given}))
    assert (f"from {count} kinds of processors (family" in said) == (count > 1)
    assert bool(said) == (count > 1)


def a_run(folder: Path, *processors: str, free: str = "") -> Path:
    (folder / "tables").mkdir(parents=True)
    rows = [
        {"key": str(seed), "task": "t", "architecture": "a", "training": "i", "seed": seed, "status": "done", "processor": one}
        for seed, one in enumerate(processors)
    ]  # fmt: skip
    pd.DataFrame(rows).to_parquet(folder / "tables" / "cells.parquet")
    about = tables.provenance() | ({"processor": free} if free else {})
    count = {"model": "m", "depth": 1, "heads": 1, "length": 0, "log10_paths": 0.0, "proportion": 1.0}
    tables.write("path_counts", [count], folder / "tables" / "path_counts.parquet", about)
    return folder


def test_a_comparison_of_runs_names_their_processors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    zen, other, xeon = (a_run(tmp_path / name, one, free=one) for name, one in (("a", ZEN), ("b", ZEN), ("c", XEON)))
    mixed = a_run(tmp_path / "d", ZEN, free=XEON)
    assert find_kinds_of_run(mixed / "tables") == ["family 25 model 17, AVX512", "family 6 model 143, AVX512"]
    assert cli.main(["compare", str(zen), str(other)]) == 0
    assert "processors" not in capsys.readouterr().out
    assert cli.main(["compare", str(zen), str(xeon)]) == 0  # numbers are equal all the same
    said = "family 25 model 17, AVX512 in the first run, family 6 model 143, AVX512 in the second"
    assert said in capsys.readouterr().out
