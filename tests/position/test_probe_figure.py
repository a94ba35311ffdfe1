"""Check that the probe's matrix finds the trained networks of each kind of attention."""

import pandas as pd
from helpers import cells

from rankfall.measure.context import Context
from rankfall.position.probe.figure import match_trained
from rankfall.position.probe.measure import probe
from rankfall.report.rows import cell_columns


def test_trained_networks_stand_in_their_square_at_the_trained_length() -> None:
    mask = {"name": "local", "window": 2}
    networks = []
    for seed, passes in enumerate((True, True, False)):
        (cell,) = cells(architecture={"position": "toeplitz", "normaliser": "l2", "mask": mask}, grid={"seed": seed})
        about = cell_columns(cell, {"status": "done", "reason": "", "device": "cpu", "stack": "s"})
        for length in (8, 16, 4):  # the trained length is the longest that is not beyond it
            networks.append(about | {"length": length, "beyond": length > 8, "passes": passes and length == 8})
    choice = {"normalisers": ["softmax", "l2"], "positions": ["none", "symmetric", "toeplitz"], "masks": ["none", mask]}
    shown = pd.DataFrame(probe(Context(), sentinels=["none", "bos"], tokens=8, draws=3, **choice))
    learned, keys = match_trained(pd.DataFrame(networks), shown)
    ((index, seeds),) = learned.items()
    row = shown.loc[index]
    assert (row.normaliser, row.position, row["mask"], row.sentinels) == ("l2", "toeplitz", "local(window=2)", "none")
    assert len(keys) == 3 and seeds == (2, 3)
