"""Guards that a trial that was passed is held, and that old ones can go."""

import os
import time
from pathlib import Path

from rankfall.run.store import Store
from rankfall.run.store.inventory import DAY, Live, find_removable


def test_what_was_kept_is_held_and_goes_when_it_is_old(tmp_path: Path) -> None:
    store, file = Store(tmp_path), tmp_path / "trials" / "aa.json"
    store.keep_trial("aa", {"kind": "mask"})
    assert store.has_passed("aa") and not store.has_passed("bb")
    assert find_removable(store, Live()) == []
    old = time.time() - 31 * DAY
    os.utime(file, (old, old))
    assert [(item.kind, item.path) for item in find_removable(store, Live())] == [("trial", file)]
