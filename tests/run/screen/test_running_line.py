"""Guards the line of a running job: it says what the job does before its first network."""

import pytest

from rankfall.run.screen.logs import parse_log
from rankfall.run.screen.screen import line
from rankfall.run.screen.state import Job

COMPILES = "thousandfold: compiling the machine, once\n"


@pytest.mark.parametrize(
    ("log", "said"),
    [
        ("", "loading PyTorch"),
        (COMPILES, "compiling the machine, once"),
        (f"{COMPILES}checking components\n", "checking components"),
        (f"{COMPILES}8 cells: 2 in store, 6 to train\n", "2 of 8 cells"),
    ],
)
def test_a_job_says_what_it_does_before_it_counts_cells(log: str, said: str) -> None:
    job = Job("train", "train sorting 0-31", "out", "log", 0.0)
    assert line(job, parse_log(log), 20.0) == f"train sorting 0-31, 20 s: {said}"
    drawn = Job("figure", "figure paths", "out", "log", 0.0)  # it may write nothing until it ends
    assert line(drawn, parse_log(""), 20.0) == "figure paths, 20 s"
