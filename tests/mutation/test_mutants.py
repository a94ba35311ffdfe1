"""Guards the campaign of random edits itself: that edits are valid and real, and that a hole in a key cannot go unseen."""

import ast
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from findings import Findings
from mutants import Mutant, mutate, package_files
from units import _written

PACKAGE = Path(__file__).parents[2] / "src" / "rankfall"
EDIT = Mutant("nets/masks/causal.py", 7, "Add -> Sub", "")


def units(key: str = "k", digest: str = "d") -> dict:
    return {"job": {"train": [key, digest], "data": ["k", "d"]}, "cell": {"one": [key, digest]}}


@pytest.mark.slow
def test_every_edit_is_python_and_another_program() -> None:
    rng = random.Random(0)
    edits = [(name, mutate(name, (PACKAGE / name).read_text(), rng)) for name in package_files(PACKAGE)]
    found = [(name, mutant) for name, mutant in edits if mutant is not None]
    assert len(found) > 0.7 * len(edits)
    for name, mutant in found:
        before, after = (PACKAGE / name).read_text(), mutant.text
        same = ast.dump(ast.parse(after)) == ast.dump(ast.parse(ast.unparse(ast.parse(before))))
        assert not same or mutant.what == "docstring", f"{name}: {mutant.what} changed nothing"


def test_edits_follow_from_the_seed() -> None:
    source = (PACKAGE / "nets" / "network.py").read_text()
    assert mutate("a", source, random.Random(3)) == mutate("a", source, random.Random(3))


@pytest.mark.parametrize(
    ("key", "digest", "holes", "for_nothing"),
    [("k", "d", 0, 0), ("k", "other", 2, 0), ("other", "d", 0, 2), ("other", "other", 0, 0), ("k", "broken", 0, 0)],
)
def test_a_hole_is_other_numbers_under_the_same_key(key: str, digest: str, holes: int, for_nothing: int) -> None:
    found = Findings()
    found.add(EDIT, units(), units(key, digest))
    assert (len(found.holes), found.for_nothing) == (holes, for_nothing)
    assert found.changed == (digest == "other")


def test_an_edit_that_stops_everything_proves_nothing() -> None:
    found = Findings()
    found.add(EDIT, units(), None)
    assert (found.broken, sum(found.tried.values()), found.holes) == (1, 0, [])


def test_a_table_with_a_failed_cell_has_no_numbers_to_compare(tmp_path: Path) -> None:
    pq.write_table(pa.table({"status": ["done", "failed"], "value": [0.5, None]}), tmp_path / "paths.parquet")
    assert _written(tmp_path / "paths.parquet") == "broken"
