"""Guards the scorecard on a terminal and in LaTeX: one setting at a time, names as they are, chance beside numbers."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest
from helpers import config
from score_rows import row

from rankfall import cli
from rankfall.report import tables
from rankfall.report.conform import conform
from rankfall.report.headlines import headlines
from rankfall.report.score_text import as_latex, as_lines, math

CHANCE = {"accuracy__chance": 0.125}
ROWS = [
    row("a_b & 50%", residual_last=0.5, residual_last__deviation=0.25, accuracy=0.125, cost_ms=2.0, **CHANCE),
    row("x^2 {#1} ~$\\", residual_last=0.25, residual_last__floor=1.0, accuracy=1.0, cost_ms=3.0, **CHANCE),
    row("none", residual_last__of=3, residual_last__reason="it underflowed", log_residual=-2044948.0, log_residual__deviation=17747.2),
    row("flat", depth=2, residual_last=0.9),
]  # fmt: skip


@pytest.fixture
def scores() -> pd.DataFrame:
    return conform("scorecard", ROWS).to_pandas()


def test_a_table_for_latex(scores: pd.DataFrame) -> None:
    text = as_latex(scores, ["residual_last", "accuracy", "cost_ms", "log_residual"], "sorting, long, depth 6")
    lines = [line for line in text.splitlines() if not line.startswith("%")]
    assert lines.pop(0).startswith(r"\resizebox")  # to the width of the text, if it is wider
    assert lines[0] == r"\begin{tabular}{lrrrr}" and lines[-2:] == [r"\bottomrule", r"\end{tabular}}"]
    assert lines[2].startswith(
        r"architecture & \shortstack[r]{residual at\\the last layer} & \shortstack[r]{test accuracy} & "
    )
    assert lines[4:-2] == [
        r"a\_b \& 50\% & $0.500 \pm 0.250$ & $0.13$ & $2.00$ &  \\",
        r"none & -- &  &  & $-2{,}044{,}948 \pm 17{,}747$ \\",
        r"x\textasciicircum{}2 \{\#1\} \textasciitilde{}\$\textbackslash{} & floor & $1.00$ & $3.00$ &  \\",
        r"\midrule",
        r"(chance) &  & $0.13$ &  &  \\",
    ]
    ordered = as_latex(scores, ["residual_last"], "sorting, long, depth 6", ["none", "a_b & 50%"]).splitlines()
    assert [line.split()[0] for line in ordered if line.endswith(r"\\")][1:3] == ["none", r"a\_b"]
    assert "flat" not in text and "mean ± deviation over 3 seeds" in text.splitlines()[0]


def test_many_numbers_run_down_and_one_power_serves_a_number_and_its_deviation(scores: pd.DataFrame) -> None:
    text = as_latex(scores, [one.name for one in headlines()], "sorting, long, depth 6")
    lines = [line for line in text.splitlines() if not line.startswith("%")]
    assert lines[3].count(" & ") == 4 and lines[3].endswith(r"& (chance) \\")  # three architectures
    assert sum(line.startswith("residual at the last layer & ") for line in lines) == 1
    assert math(r"7.6e-7 \pm 1.9e-7") == r"$(7.6 \pm 1.9) \times 10^{-7}$"
    assert math(r"7.6e-7 \pm 1.9e-8") == r"$7.6 \times 10^{-7} \pm 1.9 \times 10^{-8}$"


def test_lines_are_by_setting(scores: pd.DataFrame) -> None:
    text = "\n".join(as_lines(scores))
    (meaning,) = [headline.meaning for headline in headlines() if headline.name == "residual_last"]
    assert f"residual_last: {meaning}"[:100] in text  # each column with its meaning
    deep, flat = map(text.index, ("sorting, long, depth 6 (width 48, 2 heads, float32)", "sorting, long, depth 2 ("))
    assert deep < text.index("a_b & 50%") < flat < text.index("flat", flat + 1)  # the setting with most numbers first
    assert re.search(r"\(chance\) +0\.13", text)  # of 1/8, as the page writes it
    alone = "\n".join(as_lines(scores, ["residual_last"], "sorting, long, depth 2"))
    assert "a_b" not in alone and "0.900" in alone


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tables.write("scorecard", ROWS, tmp_path / "tables" / "scorecard.parquet", {"made": "digest"})
    words = ["table", "scorecard", "--results", str(tmp_path)]
    assert cli.main([*words, "--latex", "--columns", "residual_last,order", "--out", str(tmp_path / "t.tex")]) == 0
    assert r"\toprule" in (tmp_path / "t.tex").read_text()
    capsys.readouterr()
    assert cli.main([*words, "--setting", "sorting, long, depth 2"]) == 0
    assert "flat" in capsys.readouterr().out
    raw = config()  # of one architecture, which gets a name and a label
    raw |= {"architectures": {"flat": raw["architectures"]["net"]}, "labels": {"flat": "flat_net & more"}}
    raw["grid"][0]["architecture"] = "flat"
    (tmp_path / "config.json").write_text(json.dumps(raw))
    with_labels = [*words, "--config", str(tmp_path / "config.json"), "--setting", "sorting, long, depth 2"]
    assert cli.main(with_labels) == 0
    assert "flat_net & more" in capsys.readouterr().out
    for wrong, message in (
        (["--columns", "residual"], "fix: choose from order, "),
        (["--setting", "sorting, long, depth 3"], "there is no setting 'sorting, long, depth 3'; there is: "),
    ):
        assert cli.main([*words, *wrong]) == 2
        assert message in capsys.readouterr().err


def test_a_share_of_what_a_mask_leaves_stands_beside_an_accuracy() -> None:
    """.57 under a causal mask read as half of what can be had, and is 92% of it."""
    numbers = {"accuracy__chance": 0.339, "accuracy__deviation": 0.01}
    rows = [
        row("causal", accuracy=0.57, accuracy__attainable=0.6163, **numbers),
        row("all", accuracy=0.57, accuracy__attainable=1.0, **numbers),
        row("own", accuracy=0.57, **numbers),
    ]
    scores = conform("scorecard", rows).to_pandas()
    lines = [line.split(maxsplit=1) for line in as_lines(scores, ["accuracy"])]
    values = {name[0]: name[1] for name in lines if len(name) > 1}
    assert values["causal"] == "0.57±0.01 (92%)" and values["all"] == values["own"] == "0.57±0.01"
    assert "in brackets, the share of the 0.62 that the mask leaves attainable: causal" in "\n".join(as_lines(scores))


def test_what_decimals_would_make_a_zero_is_written_with_its_power() -> None:
    """2e-6 and 1e-4 both read 0.000, and so did rounding noise."""
    values = {"a": 2e-6, "b": 1e-4, "c": 1e-16, "d": 0.25}
    scores = conform("scorecard", [row(name, residual_last=value) for name, value in values.items()]).to_pandas()
    text = "\n".join(as_lines(scores))
    assert re.search(r"a +2\.0e-6\n +b +1\.0e-4\n +c +floor\n +d +0\.250\n", text) and "0.000" not in text
