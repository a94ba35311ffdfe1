"""Tests that after any interleaving of runs, kills, edits and lost files, the next run gives the tables of a run from nothing.

pytest -m slow -s tests/faults/test_fault_campaign.py                              the sample of this version of the sources
RANKFALL_CAMPAIGN=17,93 pytest -m slow -s tests/faults/test_fault_campaign.py      these again
RANKFALL_CAMPAIGN=0..199 pytest -m slow -s tests/faults/test_fault_campaign.py     the whole campaign, some hours
"""

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fault_campaign import Campaign, Events, Wrong
from samples import seed_of
from small_grid import EDITS

COUNT, SECONDS = 18, 120.0  # of the sample, if there is time

pytestmark = pytest.mark.slow


def draw_seeds() -> Iterator[int]:
    """Yield the requested seeds, or the sample of this version of the sources."""
    began, first = time.monotonic(), seed_of()
    requested = os.environ.get("RANKFALL_CAMPAIGN")
    for part in (requested or f"{first}..{first + COUNT - 1}").split(","):
        start, _, last = part.partition("..")
        for seed in range(int(start), int(last or start) + 1):
            if requested or time.monotonic() - began < SECONDS:
                yield seed


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    """Return a campaign whose runs from nothing serve both tests."""
    return Campaign(tmp_path_factory.mktemp("campaign"))


def test_what_is_compared_depends_on_every_edit(campaign: Campaign, tmp_path: Path) -> None:
    """Check that tables from before an edit of any file are found to be wrong."""
    for file in EDITS:
        grid = campaign.reference("a", (0, 0, 0)).copy(tmp_path / "edited")
        Events(campaign, grid).compare("a")
        grid.write(file, 1)
        with pytest.raises(Wrong, match="not that of a run from nothing"):
            Events(campaign, grid).compare("a")
        shutil.rmtree(grid.folder)


def test_campaign(campaign: Campaign) -> None:
    failed, began = {}, time.monotonic()
    for count, seed in enumerate(draw_seeds(), 1):
        wrong = campaign.attempt(seed)
        print(f"{time.monotonic() - began:5.0f} s {count:4}  RANKFALL_CAMPAIGN={seed}: {wrong or 'ok'}", flush=True)
        if wrong:
            failed[seed] = wrong
    # All of it once more at the end, where it is still seen when only the end of a long log is kept.
    summary = "\n\n".join(f"RANKFALL_CAMPAIGN={seed}: {wrong}" for seed, wrong in failed.items())
    assert not failed, f"{len(failed)} interleavings went wrong:\n{summary}"
