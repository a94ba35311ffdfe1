"""What is said of two censuses: changed values, types that are new or gone, and nothing for rounding, times and memory."""

from pathlib import Path
from typing import Any

import pytest

from rankfall.census.against import as_text, changes, read_census, write_census
from rankfall.errors import RankfallError

BERT: dict[str, Any] = {
    "type": "bert", "outcome": "measured", "transformers": "5.0", "init_std": 0.02, "norm": "layer", "order": None, "skips": True,
    "layers": 12, "seconds": 1.0, "megabytes": 300,
}  # fmt: skip


def test_the_same_census_again_says_nothing(tmp_path: Path) -> None:
    write_census(tmp_path / "old.csv", [BERT])
    again = BERT | {"seconds": 9.0, "megabytes": 1, "init_std": 0.02 * (1 + 1e-9)}
    assert changes(read_census(tmp_path / "old.csv"), [again]) == []


def test_a_changed_init_is_a_line_with_its_factor(tmp_path: Path) -> None:
    write_census(tmp_path / "old.csv", [BERT])
    assert changes(read_census(tmp_path / "old.csv"), [BERT | {"init_std": 0.04}]) == [
        "bert: init_std 0.02 -> 0.04 (x 2)"
    ]


def test_each_column_that_changed_has_a_line_and_the_version_one() -> None:
    new = BERT | {"transformers": "5.1", "norm": "rms", "order": 3.0, "layers": 24}
    assert changes(as_text([BERT]), [new]) == [
        "transformers: 5.0 -> 5.1",
        "bert: norm layer -> rms",
        "bert: order null -> 3",
        "bert: layers 12 -> 24 (x 2)",
    ]


def test_types_that_come_and_go_are_said_unless_others_were_chosen() -> None:
    gpt2 = BERT | {"type": "gpt2", "outcome": "refused"}
    assert changes(as_text([BERT]), [gpt2]) == ["bert: gone", "gpt2: new, refused"]
    assert changes(as_text([BERT]), [gpt2], chosen=["gpt2"]) == ["gpt2: new, refused"]


def test_a_file_that_is_no_census_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(RankfallError, match="no such file"):
        read_census(tmp_path / "none.csv")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(RankfallError, match="has no column 'type'"):
        read_census(tmp_path / "other.csv")
