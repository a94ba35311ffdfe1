"""Guards what stays in the user's cache folder: what is used, and what was used of late; the rest goes, never under somebody's hands."""

import fcntl
import os
import time
from pathlib import Path

import pytest

from rankfall.caches import AGE, tidy, use


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "rankfall"


def made(path: Path, age: float) -> Path:
    """A file or, where its name ends so, a folder of machine code; last used so many seconds ago."""
    files = [path / "lock", path / "code.nbc"] if path.parent.name == "kernels" else [path]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x")
    for one in [*files, path]:
        os.utime(one, (time.time() - age,) * 2)
    return path


def test_what_earlier_versions_left_goes(home: Path) -> None:
    old = [made(home / kind / "old", AGE + 60) for kind in ("kernels", "analyses", "vega", "of-a-version-to-come")]
    new = [made(home / kind / "new", AGE - 3600) for kind in ("kernels", "analyses", "vega")]
    used = made(home / "analyses" / "used", AGE + 60)
    use(used)
    assert sorted(tidy()) == sorted(old)
    assert not any(path.exists() for path in old) and all(path.exists() for path in [*new, used])
    assert [path.name for path in (home / "kernels").iterdir()] == ["new"], "nothing is left of what was moved away"
    again = made(home / "vega" / "again", AGE + 60)
    assert tidy() == [] and again.exists(), "once a day"
    os.utime(home / "tidied", (0, 0))
    assert tidy() == [again]


def test_a_folder_that_is_in_use_stays(home: Path) -> None:
    old = made(home / "kernels" / "old", AGE + 60)
    with (old / "lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert tidy() == [] and (old / "code.nbc").exists()
