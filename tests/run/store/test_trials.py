"""Guards that a trial that was passed is held, and that old ones can go."""

import os
import time
from pathlib import Path

from rankfall.run.store import Store
from rankfall.run.store.inventory import DAY, Live, find_removable
from rankfall.run.store.trials import Trials


def test_what_was_kept_is_held_and_goes_when_it_is_old(tmp_path: Path) -> None:
    trials, store = Trials(tmp_path), Store(tmp_path)
    trials.keep("aa", {"kind": "mask"})
    assert trials.holds("aa") and not trials.holds("bb")
    assert find_removable(store, Live()) == []
    old = time.time() - 31 * DAY
    os.utime(trials.path("aa"), (old, old))
    assert [(item.kind, item.path) for item in find_removable(store, Live())] == [("trial", trials.path("aa"))]
