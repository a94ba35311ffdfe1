"""Guards how processes share the slow tests: SLURM's are one piece, and what takes longest begins first."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from sharing import LONG, longest_first, piece

ROOT = Path(__file__).parents[1]


def test_slurm_is_one_piece_and_other_files_are_pieces_of_their_own() -> None:
    assert piece("tests/slurm/test_faults.py::test_a") == piece("tests/slurm/test_doctor.py::test_b[1::2]")
    assert piece("tests/faults/test_kill.py::test_a") == "tests/faults/test_kill.py"


def test_long_pieces_begin_first_and_the_rest_keeps_its_order() -> None:
    tests = [
        "tests/test_b.py::b",
        "tests/faults/test_soak.py::soak",
        "tests/slurm/test_doctor.py::d",
        "tests/test_a.py::a",
    ]
    ordered = [item.nodeid for item in longest_first(SimpleNamespace(nodeid=test) for test in tests)]
    assert ordered == [tests[2], tests[1], tests[0], tests[3]]


@pytest.mark.parametrize("name", LONG)
def test_what_is_named_is_there(name: str) -> None:
    assert (ROOT / name).exists()
