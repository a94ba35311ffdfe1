"""What is said of two censuses: changed values, types that are new or gone, and nothing for rounding, times and memory."""

from pathlib import Path
from typing import Any

from rankfall.commands.census import as_text, changes, read_census

BERT: dict[str, Any] = {
    "type": "bert", "outcome": "measured", "transformers": "5.0", "init_std": 0.02, "norm": "layer", "order": None, "skips": True,
    "layers": 12, "seconds": 1.0, "megabytes": 300,
}  # fmt: skip


def test_the_same_census_again_says_nothing(tmp_path: Path) -> None:
    as_text([BERT]).to_csv(tmp_path / "old.csv", index=False)
    again = BERT | {"seconds": 9.0, "megabytes": 1, "init_std": 0.02 * (1 + 1e-9)}
    assert changes(read_census(tmp_path / "old.csv"), [again]) == []


def test_a_changed_init_is_a_line_with_its_factor(tmp_path: Path) -> None:
    as_text([BERT]).to_csv(tmp_path / "old.csv", index=False)
    assert changes(read_census(tmp_path / "old.csv"), [BERT | {"init_std": 0.04}]) == [
        "bert: init_std 0.02 -> 0.04 (x 2)"
    ]


def test_types_that_come_and_go_are_said_unless_others_were_chosen() -> None:
    gpt2 = BERT | {"type": "gpt2", "outcome": "refused"}
    assert changes(as_text([BERT]), [gpt2]) == ["bert: gone", "gpt2: new, refused"]
    assert changes(as_text([BERT]), [gpt2], chosen=["gpt2"]) == ["gpt2: new, refused"]
