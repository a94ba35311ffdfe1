"""Text for masked language models: whole texts are held out, the two lengths show the same tokens, nothing depends on the seed."""

import json
import math
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers import config

from rankfall.errors import RankfallError
from rankfall.run.jobs.engine import Interrupted, Settings
from rankfall.run.jobs.training import train_cells
from rankfall.run.plan import make_plan
from rankfall.run.store import Store
from rankfall.streams import stream
from rankfall.tasks.masked_text import masked_text, shorten_repeats
from rankfall.train.history import means
from rankfall.train.progress import Progress
from rankfall.train.resume import strip_prefix

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]


@pytest.fixture
def text(tmp_path: Path) -> str:
    """Twenty texts; the fourth, eighth and so on say other words than the others."""
    rng = stream(0, "words")
    lines = [" ".join(rng.choice(WORDS if n % 4 else ["omega", "alpha"], 60)) for n in range(1, 21)]
    (tmp_path / "text.txt").write_text("\n\n".join(lines))
    return str(tmp_path / "text.txt")


def test_every_fourth_text_is_held_out(text: str) -> None:
    data = masked_text(stream(0, "data"), text=text, length=10, longer=30, vocabulary=200, every=4)
    train, test, longer = (data.splits[name].inputs for name in ("train", "test", "longer"))
    assert (train.shape[1], test.shape[1], longer.shape[1]) == (10, 10, 30)
    assert len(torch.unique(train)) == len(WORDS) + 1  # and the end of a text
    assert torch.equal(test.flatten()[: longer.numel()], longer.flatten())
    assert all(split.targets is split.inputs for split in data.splits.values())
    assert data.special == 5 and data.size_in == data.size_out <= 200
    assert int(train.max()) < data.size_in
    assert not (train == data.special - 1).any()  # what hides a token stands nowhere
    ends = (train.flatten() == 2).nonzero().flatten().diff()
    assert set(ends.tolist()) == {61}


def test_chance_is_that_of_the_most_frequent_word(text: str) -> None:
    data = masked_text(stream(0, "data"), text=text, length=10, longer=30, vocabulary=200, every=4)
    counts = torch.bincount(data.train.inputs.flatten())
    counts[: data.special] = 0
    asked = data.test.inputs[data.test.inputs >= data.special]
    assert data.chance == pytest.approx(float((asked == counts.argmax()).double().mean()))
    assert not math.isnan(data.chance)


def test_the_seed_makes_no_difference(text: str) -> None:
    one, other = (masked_text(stream(s, "data"), text=text, length=10, longer=30, vocabulary=200) for s in (0, 1))
    assert all(torch.equal(one.splits[name].inputs, other.splits[name].inputs) for name in one.splits)


def test_without_longer_windows_there_is_no_such_split(text: str) -> None:
    assert set(masked_text(stream(0, "data"), text=text, length=10, longer=None, vocabulary=200).splits) == {
        "train",
        "test",
    }


def test_a_sign_is_not_repeated_more_often_than_said() -> None:
    assert shorten_repeats(("+------+--+ a == b ......", "x____y 0000"), 3) == ("+---+--+ a == b ...", "x____y 0000")
    assert shorten_repeats(("------",), 1) == ("-",)
    assert shorten_repeats(("------",), None) == ("------",)


def test_drawn_rules_are_not_what_is_learned(tmp_path: Path) -> None:
    (tmp_path / "rules.txt").write_text("\n\n".join(["alpha beta " + 50 * "-" + " gamma delta"] * 20))
    few, all_ = (
        masked_text(stream(0, "d"), text=str(tmp_path / "rules.txt"), length=10, longer=None, vocabulary=200, repeats=n)
        for n in (2, None)
    )
    most = [torch.bincount(data.train.inputs.flatten()).max() / data.train.inputs.numel() for data in (few, all_)]
    assert most[0] == pytest.approx(2 / 7, abs=0.02) and most[1] > 0.85  # four words, two signs and the end of a text


def test_a_data_set_of_the_library_is_read_as_a_file_is(text: str, tmp_path: Path) -> None:
    pytest.importorskip("datasets")
    (tmp_path / "rows").mkdir()
    rows = [json.dumps({"body": part}) for part in Path(text).read_text().split("\n\n")]
    (tmp_path / "rows" / "rows.jsonl").write_text("\n".join(rows))
    options: dict[str, Any] = {"length": 10, "longer": 30, "vocabulary": 200}
    one = masked_text(stream(0, "data"), text=text, **options)
    other = masked_text(stream(0, "data"), dataset=str(tmp_path / "rows"), column="body", **options)
    assert all(torch.equal(one.splits[name].inputs, other.splits[name].inputs) for name in one.splits)


def test_windows_that_are_too_long_are_refused(text: str) -> None:
    with pytest.raises(RankfallError, match=r"too few for one window of 5000; lower longer, or raise test"):
        masked_text(stream(0, "data"), text=text, length=10, longer=5000, vocabulary=200)


@pytest.mark.long
def test_a_killed_job_goes_on_to_the_same_bits(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Masks belong to seed and step, so training that was interrupted ends as if it had not been; its loss falls."""
    raw = config(
        architecture={"position": "rope", "width": 16},
        training={"epochs": 12, "batch": 20, "lr": 1e-2, "dropout": 0.1},
        grid={"task": "words", "seed": "0..2"},
    )
    raw["tasks"] = {"words": {"task": "masked_text", "text": text, "length": 10, "longer": 30, "every": 4}}
    plan, stores = make_plan(raw), [Store(tmp_path / name) for name in ("calm", "killed")]
    step = Progress.step

    def train(store: Store) -> None:
        train_cells(plan.cells, store, Settings(torch.device("cpu")), Progress(), plan.origin)

    train(stores[0])
    with monkeypatch.context() as patch:
        patch.setattr(Progress, "step", lambda self, m, h: m.step_count == 7 and os.kill(os.getpid(), signal.SIGTERM))
        with pytest.raises(Interrupted):
            train(stores[1])
    assert Progress.step is step
    train(stores[1])
    assert "resuming a stack of 3 at step 7" in capsys.readouterr().err
    keys = [cell.key for cell in plan.cells]
    ((calm,), (killed,)) = (store.load_cells(keys) for store in stores)
    assert calm.tensors.keys() == killed.tensors.keys()
    assert all(torch.equal(value, killed.tensors[name]) for name, value in calm.tensors.items())
    for member, record in enumerate(calm.records):
        course = {split: [v for _, s, m, v in means(strip_prefix("history", calm.tensors), member) if (s, m) == (split, "loss")]
                  for split in ("train", "test")}  # fmt: skip
        assert course["train"][-1] < 0.8 * course["train"][0]
        assert set(record["final"]) == {"train", "test", "longer"}
        assert record["final"]["longer"]["loss"] > 0
