"""Guards the count of test samples that are training samples, and what is refused by it."""

from dataclasses import replace

import pytest
import torch
from plans import VALID, changed

from rankfall.errors import RankfallError
from rankfall.random_streams import stream
from rankfall.report.rows import dataset_rows
from rankfall.run.jobs.cells import check_overlap
from rankfall.run.plan import make_plan
from rankfall.tasks._dataset import Dataset, Split
from rankfall.tasks.sorting import sorting


def test_samples_are_counted_as_often_as_they_are_asked() -> None:
    train, test = torch.tensor([[0, 1], [1, 1], [0, 1]]), torch.tensor([[1, 1], [1, 0], [1, 1], [0, 1]])
    assert Dataset({"train": Split(train, train), "test": Split(test, test)}, 2, 2).count_seen() == 3
    assert Dataset({"train": Split(train, train), "test": Split(test[1:2], test[1:2])}, 2, 2).count_seen() == 0


def test_a_test_set_that_can_be_known_by_heart_is_refused() -> None:
    """30 of 30 test sequences of length 3 with 2 symbols were training sequences, without a word."""
    tiny = {"train": 90, "test": 30, "length": 3, "symbols": 2}
    cell = make_plan(changed("tasks/sorting", tiny, VALID)).cells[0]
    made = sorting(stream(0, "data"), **tiny)
    with pytest.raises(RankfallError) as error:
        check_overlap(cell, made)
    first, second = str(error.value).splitlines()
    assert "30 of 30 test samples are training samples" in first and "raise length or symbols" in second
    (row,) = [row for row in dataset_rows(cell, made) if row["split"] == "test"]
    assert row["seen"] == 1.0
    check_overlap(cell, sorting(stream(0, "data"), train=90, test=30, length=5, symbols=6))
    named = replace(cell.task, task=replace(cell.task.task, name="probe"))
    check_overlap(replace(cell, task=named), made)
