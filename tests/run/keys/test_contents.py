"""Guards that every byte of a file counts however large it is, that a large one is read once, and that nothing which only looks like the
state of before is taken for it.
"""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import pytest
from plans import changed, refusal

from rankfall.errors import RankfallError
from rankfall.run.keys import contents, files
from rankfall.run.keys.contents import hash_file
from rankfall.run.plan import make_plan

ENTRY = {"task": "sorting", "architecture": "san", "training": "short", "seed": 0}


@pytest.fixture
def reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """What is really read; files of a kilobyte are large, and the cache is a new one."""
    found: list[Path] = []
    read = contents._read

    def counted(path: Path) -> str:
        found.append(path)
        return read(path)

    contents._cached_hash.cache_clear()
    monkeypatch.setattr(contents, "LARGE", 1000)
    monkeypatch.setattr(contents, "_read", counted)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return found


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    path = tmp_path / "weights"
    path.write_bytes(bytes(3000))
    return path


def settle(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if some time had gone by."""
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + 10)


def another_process() -> None:
    contents._cached_hash.cache_clear()


@pytest.mark.parametrize("place", [0, 1, 132, 1999, 2999])
def test_every_byte_counts(place: int, tmp_path: Path) -> None:
    """Where there were slices of 32 MiB and more, a change between them went unnoticed."""
    path = tmp_path / "weights"
    size = 2**25 + 3000
    with path.open("wb") as file:
        file.truncate(size)
    before = hash_file(path)
    with path.open("r+b") as file:
        file.seek(place * size // 3000)
        file.write(b"x")
    assert hash_file(path) != before


def test_what_a_hash_is(weights: Path) -> None:
    assert hash_file(weights) == sha256(bytes(3000)).hexdigest()
    assert files.content(weights) == hash_file(weights)[:12]


def test_a_large_file_is_read_once_by_all_processes(
    weights: Path, reads: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(monkeypatch)
    expected = hash_file(weights)
    assert hash_file(weights) == expected
    another_process()
    assert hash_file(weights) == expected
    assert len(reads) == 1
    small = weights.with_name("small")
    small.write_bytes(b"x")
    hash_file(small)
    another_process()
    hash_file(small)
    assert len(reads) == 3
    assert len(list((weights.parent / "cache" / "rankfall" / "contents").iterdir())) == 1


def test_an_edit_whose_times_are_set_back_is_seen(
    weights: Path, reads: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(monkeypatch)
    before, times = hash_file(weights), weights.stat()
    weights.write_bytes(b"x" * 3000)  # as large
    os.utime(weights, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert weights.stat().st_mtime_ns == times.st_mtime_ns
    assert hash_file(weights) != before
    another_process()
    assert hash_file(weights) == sha256(b"x" * 3000).hexdigest()
    other = weights.with_name("other")
    other.write_bytes(bytes(3000))
    os.utime(other, ns=(times.st_atime_ns, times.st_mtime_ns))
    other.replace(weights)  # another inode
    assert hash_file(weights) == before


def test_a_file_that_has_just_changed_is_not_remembered(weights: Path, reads: list[Path]) -> None:
    """It may change again within the same tick of the file system's clock."""
    hash_file(weights)
    hash_file(weights)
    assert len(reads) == 2
    assert not (weights.parent / "cache").exists()


def test_a_file_that_changes_while_it_is_read_has_no_hash(
    weights: Path, reads: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    read = contents._read

    def changing(path: Path) -> str:
        found = read(path)
        path.write_bytes(os.urandom(3000 + len(reads)))
        return found

    monkeypatch.setattr(contents, "_read", changing)
    with pytest.raises(RankfallError, match="weights: changes while it is read"):
        hash_file(weights)


@pytest.mark.parametrize("content", [b"", b"\xff", b"1 2 3 4 abc\n", b"3000 1 1 1 " + b"0" * 64])
def test_an_entry_that_is_something_else_is_written_anew(
    content: bytes, weights: Path, reads: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(monkeypatch)
    expected = hash_file(weights)
    (entry,) = (weights.parent / "cache" / "rankfall" / "contents").iterdir()
    good = entry.read_bytes()
    entry.write_bytes(content)
    another_process()
    assert hash_file(weights) == expected
    assert entry.read_bytes() == good


def test_without_a_cache_folder_it_is_read(weights: Path, reads: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    settle(monkeypatch)
    (weights.parent / "cache").write_text("a file where a folder should be")
    assert hash_file(weights) == sha256(bytes(3000)).hexdigest()
    another_process()
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError))
    assert hash_file(weights) == sha256(bytes(3000)).hexdigest()


def test_many_at_once_share_the_cache(weights: Path, reads: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    settle(monkeypatch)
    other = weights.with_name("other")
    other.write_bytes(b"x" * 3000)
    wanted = {path: sha256(path.read_bytes()).hexdigest() for path in (weights, other)}

    def ask(number: int) -> bool:
        path = (weights, other)[number % 2]
        contents._cached_hash.cache_clear()
        return hash_file(path) == wanted[path]

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(200)))
    assert len(list((weights.parent / "cache" / "rankfall" / "contents").iterdir())) == 2


def test_a_folder_whose_links_lead_in_a_circle(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    (corpus / "inner").mkdir(parents=True)
    (corpus / "inner" / "text").write_text("one")
    (corpus / "up").symlink_to("..")
    (corpus / "itself").symlink_to("itself")
    (corpus / "inner" / "around").symlink_to("../inner")
    os.mkfifo(corpus / "pipe")
    before = files.content(corpus)
    (corpus / "inner" / "text").write_text("two")
    assert files.content(corpus) != before


def test_a_folder_that_is_a_link_counts(tmp_path: Path) -> None:
    corpus, elsewhere = tmp_path / "corpus", tmp_path / "elsewhere"
    corpus.mkdir()
    elsewhere.mkdir()
    (corpus / "part").symlink_to(elsewhere)
    before = files.content(corpus)
    (elsewhere / "text").write_text("one")
    assert files.content(corpus) != before


MAKERS = {"a named pipe": "os.mkfifo({!r})", "a circle of symbolic links": "os.symlink('odd', {!r})"}


@pytest.mark.parametrize("what", MAKERS)
@pytest.mark.parametrize("name", ["./odd", "odd"])
def test_an_option_that_names_no_file_is_refused_and_not_waited_for(
    what: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(MAKERS[what].format("odd"), {"os": os})
    config = changed("tasks/sorting", {"task": "memorization", "text": name}, changed("grid", [ENTRY]))
    message = refusal(config)
    assert "odd" in message
    assert what in message or "does not exist" in message


def test_a_device_or_pipe_in_other_places(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "is a named pipe, not a file" in refusal(changed("compute", {"costs": str(tmp_path / "pipe")}))
    config = changed("tasks/sorting", {"task": "memorization", "text": "/dev/zero"}, changed("grid", [ENTRY]))
    assert "is a device, not a file" in refusal(config)


def test_planning_reads_large_weights_once(tmp_path: Path, reads: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    settle(monkeypatch)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "weights").write_bytes(bytes(5000))
    config = changed("measures", {"model_residuals": {"model": "./model"}}, changed("grid", [ENTRY]))
    keys = set()
    for _ in range(3):
        another_process()
        keys.add(make_plan(config).measures["model_residuals"].key)
    assert len(keys) == 1
    assert [path.name for path in reads].count("weights") == 1


def test_the_cache_is_shared_by_real_processes(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    with path.open("wb") as file:
        file.truncate(2**24)
    os.utime(path, (0, 0))
    program = "import sys; from pathlib import Path; from rankfall.run.keys import contents; contents.SETTLED = -1; "
    program += "print(contents.hash_file(Path(sys.argv[1])))"
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    running = [
        subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(3)
    ]
    assert {process.communicate()[0].strip() for process in running} == {sha256(bytes(2**24)).hexdigest()}
    assert len(list((tmp_path / "cache" / "rankfall" / "contents").iterdir())) == 1
