"""`rankfall census` end to end on a few small types: rows, refusals, what is kept, and what changed."""

import csv
from pathlib import Path
from typing import Any

import pytest
import torch

from rankfall.census.run import measure_in_process
from rankfall.cli import main


def census(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, str]:
    code = main(["census", *map(str, words)])
    printed = capsys.readouterr()
    return code, printed.out + printed.err


def read_rows(file: Path) -> dict[str, dict[str, str]]:
    with file.open(newline="") as text:
        return {row["type"]: row for row in csv.DictReader(text)}


@pytest.mark.long
def test_a_few_types_are_measured_kept_and_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.set_num_threads(2)  # as in a process that nobody has told otherwise
    about = ("--results", tmp_path / "results", "--depth", "2", "--tokens", "8")
    types = ("--types", "bert", "llama", "layoutxlm")
    code, output = census(capsys, *types, *about, "--out", tmp_path / "a.csv", "--layers", tmp_path / "layers.csv")
    assert code == 0
    assert "3 items: 0 in store" in output and "2 measured, 1 no model; 100.0% of 2 eligible types measured" in output
    rows = read_rows(tmp_path / "a.csv")
    bert, llama = rows["bert"], rows["llama"]
    assert (bert["mask"], bert["norm"], bert["norm_place"], bert["position"]) == (
        "bidirectional", "layer", "after the addition", "in the states",
    )  # fmt: skip
    assert (llama["mask"], llama["norm"], llama["norm_place"], llama["position"]) == (
        "causal", "rms", "before the branch", "none",
    )  # fmt: skip
    assert bert["layers"] == llama["layers"] == "2"
    assert abs(float(bert["order"]) - 3) < 0.05 and abs(float(llama["order"]) - 1) < 0.05
    assert abs(float(bert["init_std"]) - 0.02) < 0.001  # the library's own
    assert float(bert["residual_san"]) < 1e-3 < 0.5 < float(bert["residual_last"])  # maps as large as at width 768
    with (tmp_path / "layers.csv").open() as text:
        by_layer = [(row["type"], row["layer"]) for row in csv.DictReader(text)]
    assert by_layer == [
        *(("bert", str(n)) for n in range(3)), ("layoutxlm", ""), *(("llama", str(n)) for n in range(3)),
    ]  # fmt: skip

    # one more: only that is measured, and the rest is as it was
    code, output = census(capsys, *types, "gpt2", *about, "--against", tmp_path / "a.csv")
    assert code == 0 and "4 items: 3 in store" in output and "gpt2: new, measured" in output
    assert "bert:" not in output and "llama:" not in output

    # an earlier census in which bert began with other weights
    text = (tmp_path / "a.csv").read_text()
    (tmp_path / "b.csv").write_text(text.replace(bert["init_std"], "0.04"))
    code, output = census(capsys, *types, *about, "--against", tmp_path / "b.csv")
    assert code == 0 and "census_layers: in store" in output and "bert: init_std 0.04 -> 0.0199" in output


def test_a_type_that_takes_too_long_is_a_row_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def hang(*arguments: Any) -> None:
        while True:
            pass

    monkeypatch.setattr("rankfall.census.run.rows_of_type", hang)
    (row,) = measure_in_process("bert", 2, 8, 0, 1, 4)
    assert row["outcome"] == "over a limit" and "more than 1 s" in row["reason"] and row["family"] == "bert"
