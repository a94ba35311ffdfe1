"""The quantity of a user that `docs/components/measure.md` shows in one file, as a folder of files that nothing of the package names."""

from collections.abc import Iterator
from pathlib import Path

import component_pages
import pytest

from rankfall.report.quantities import set_user_quantities

MEASURE, COLUMNS, FIGURE, SHOWN = (text for _, text in component_pages.blocks("measure"))
FILES = {"__init__.py": "", "measure.py": MEASURE, "figure.py": FIGURE, "shown.py": COLUMNS + SHOWN}
CONFIG = {
    "measures": {"entropy": {"measure": "lab.entropy"}, "scorecard": {}},
    "figures": {"entropy": {"figure": "lab.entropy", "task": "sorting"}},
}


@pytest.fixture(autouse=True)
def import_from_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Import modules of users from the test's folder, and forget afterwards what a plan has learnt of them."""
    monkeypatch.syspath_prepend(tmp_path)
    yield
    forget_own()


def forget_own() -> None:
    """Forget the quantities of users: the next test has other modules of the same names, in another folder."""
    set_user_quantities([])


def write(folder: Path) -> Path:
    """Write `lab.entropy` in a folder."""
    lab = folder / "lab" / "entropy"
    lab.mkdir(parents=True)
    for name, text in FILES.items():
        (lab / name).write_text(text)
    return lab
