"""Guards how the campaign computes: each edit by its number, in a process of its own that is given up in time, by several workers."""

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from campaign import draw, run_workers
from children import in_child, recorded
from mutants import Mutant
from units import TEXT, write_text


def test_a_child_answers_with_what_its_work_returns(tmp_path: Path) -> None:
    (tmp_path / "onlyhere.py").write_text("VALUE = 3\n")

    def work() -> list[int]:
        import onlyhere  # type: ignore[import-not-found]

        return [onlyhere.VALUE, os.getpid()]

    value, process = in_child(tmp_path, work, 10.0)
    assert value == 3 and process != os.getpid()


def test_a_child_that_fails_or_never_ends_has_no_answer(tmp_path: Path) -> None:
    began = time.monotonic()
    assert in_child(tmp_path, lambda: 1 / 0, 10.0) is None
    assert in_child(tmp_path, lambda: time.sleep(60), 0.2) is None
    assert time.monotonic() - began < 20


def test_what_a_child_opens_in_the_tree_and_imports_from_elsewhere_is_told(tmp_path: Path) -> None:
    (tmp_path / "read.py").write_text("import mailcap\n")
    (tmp_path / "unread.py").write_text("")

    def work() -> int:
        import read  # type: ignore[import-not-found]

        return len(vars(read))

    told = in_child(tmp_path, recorded(tmp_path, work), 10.0)
    assert told["opened"] == ["read.py"] and told["result"] > 0
    assert "mailcap" in told["modules"] and "read" not in told["modules"]


def test_lines_of_all_workers_come_and_one_that_dies_stops_no_other() -> None:
    def counts(start: int) -> Iterator[dict[str, int]]:
        for number in range(start, 6, 2):
            if number == 3:
                os._exit(1)
            yield {"number": number, "process": os.getpid()}

    lines = list(run_workers([lambda: counts(0), lambda: counts(1)]))
    assert sorted(line["number"] for line in lines) == [0, 1, 2, 4]
    assert len({line["process"] for line in lines}) == 2


def test_breaking_off_ends_the_workers() -> None:
    def endless() -> Iterator[dict[str, int]]:
        yield {"process": os.getpid()}
        time.sleep(60)

    lines = run_workers([endless])
    worker = next(lines)["process"]
    lines.close()
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)


def test_an_edit_follows_from_its_number_alone(tmp_path: Path) -> None:
    package = tmp_path / "tree" / "rankfall"
    package.mkdir(parents=True)
    write_text(tmp_path)
    for name in ("a.py", "b.py"):
        (package / name).write_text("".join(f"x{n} = {n} + y{n}\n" for n in range(30)))
    (package / "c.py").write_text("from a import x1\n")  # nothing to edit but a docstring

    def edit(number: int) -> Mutant:
        return draw(random.Random(f"7 {number}"), tmp_path / "tree", ["a.py", "b.py", "c.py"], {"a.py"})

    drawn = [edit(number) for number in range(99)]
    assert drawn == [edit(number) for number in range(99)]
    assert {"a.py", "b.py", TEXT} <= {mutant.file for mutant in drawn}
    assert all(mutant.what == "docstring" for mutant in drawn if mutant.file == "c.py")
