"""Guards that only a trial that was really passed counts as passed: whatever else lies under its name is tried again."""

import os
import time
from pathlib import Path

import pytest

from rankfall.run.store import Store
from rankfall.run.store.inventory import DAY, Live, find_removable
from rankfall.run.store.trials import Trials


@pytest.fixture
def trials(tmp_path: Path) -> Trials:
    made = Trials(tmp_path)
    made.keep("aa", {"kind": "mask", "seconds": 0.1})
    made.keep("bb", {"kind": "norm", "seconds": 0.1})
    return made


def test_what_was_kept_is_held_and_nothing_else(trials: Trials) -> None:
    assert trials.holds("aa") and trials.holds("bb") and not trials.holds("cc")


def test_trials_of_long_ago_can_go(trials: Trials) -> None:
    store = Store(trials.folder.parent)
    assert find_removable(store, Live()) == []
    old = time.time() - 31 * DAY
    os.utime(trials.path("aa"), (old, old))
    assert [(item.kind, item.path) for item in find_removable(store, Live())] == [("trial", trials.path("aa"))]
