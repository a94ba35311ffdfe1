"""Guards that every byte of a file counts however large it is, that a large one is read once, and that an edit is seen."""

import os
import time
from hashlib import sha256
from pathlib import Path

import pytest

from rankfall.run.keys import files
from rankfall.run.keys.files import hash_file


@pytest.fixture
def reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Record what is really read. Files of a kilobyte are large, the cache is new, and files were written some time ago."""
    found: list[Path] = []
    read, now = files._read, time.time

    def counted(path: Path) -> str:
        found.append(path)
        return read(path)

    monkeypatch.setattr(files, "LARGE", 1000)
    monkeypatch.setattr(files, "_read", counted)
    monkeypatch.setattr(time, "time", lambda: now() + 10)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return found


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    path = tmp_path / "weights"
    path.write_bytes(bytes(3000))
    return path


@pytest.mark.parametrize("place", [0, 2**24, 2**25 + 2999])
def test_every_byte_counts(place: int, tmp_path: Path) -> None:
    """Where there were slices of 32 MiB and more, a change between them went unnoticed."""
    path = tmp_path / "weights"
    with path.open("wb") as file:
        file.truncate(2**25 + 3000)
    before = hash_file(path)
    with path.open("r+b") as file:
        file.seek(place)
        file.write(b"x")
    assert hash_file(path) != before


def test_a_large_file_is_read_once_by_all_processes_until_it_changes(weights: Path, reads: list[Path]) -> None:
    for _ in range(3):
        assert hash_file(weights) == sha256(bytes(3000)).hexdigest()
    assert len(reads) == 1
    times = weights.stat()
    weights.write_bytes(b"x" * 3000)  # as large
    os.utime(weights, ns=(times.st_atime_ns, times.st_mtime_ns))  # as programs that unpack an archive do
    assert hash_file(weights) == sha256(b"x" * 3000).hexdigest()
    assert len(reads) == 2


def test_a_folder_counts_by_its_files_and_may_hold_links(tmp_path: Path) -> None:
    corpus, elsewhere = tmp_path / "corpus", tmp_path / "elsewhere"
    corpus.mkdir()
    elsewhere.mkdir()
    (corpus / "part").symlink_to(elsewhere)
    (corpus / "up").symlink_to("..")
    before = files.content(corpus)
    (elsewhere / "text").write_text("one")
    assert files.content(corpus) != before
