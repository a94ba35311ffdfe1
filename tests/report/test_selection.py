"""Guards which rows of the law figures average: none from where a network of the group has no residual any more."""

import pandas as pd
import pytest

from rankfall.rank.law.shown import clear

# Seed 1 is rounding noise at layer 2; seed 2 has equal rows, which have no residual, from layer 3 on; seed 0 keeps all.
COURSES: dict[int, list[float | None]] = {
    0: [0.0, -0.1, -0.2, -0.3, -0.4],
    1: [0.0, -9.0, -16.0, -9.0, -0.5],
    2: [0.0, -1.0, -2.0, None, None],
}
TABLE = pd.DataFrame(
    [
        {"architecture": "net", "depth": 4, "seed": seed, "layer": layer, "log10_residual": value, "floor": (seed, layer) == (1, 2)}
        for seed, values in COURSES.items()
        for layer, value in enumerate(values)
    ]
).astype({"floor": "boolean"})  # fmt: skip


@pytest.mark.parametrize(
    ("seeds", "layers"), [([0], 5), ([0, 1], 2), ([0, 2], 3), ([0, 1, 2], 2)], ids=["whole", "noise", "equal rows", "both"]
)  # fmt: skip
def test_a_group_ends_where_its_first_network_does(seeds: list[int], layers: int) -> None:
    part = TABLE[TABLE.seed.isin(seeds)]
    kept = part[clear(part)]
    assert kept.groupby("seed").layer.apply(list).to_dict() == {seed: list(range(layers)) for seed in seeds}


def test_groups_are_apart() -> None:
    other = TABLE[TABLE.seed == 0].assign(architecture="other")
    both = pd.concat([TABLE, other], ignore_index=True)
    assert both[clear(both)].groupby("architecture").layer.max().to_dict() == {"net": 1, "other": 4}
    alone = both[clear(both, ["architecture", "seed"])]
    assert alone.groupby(["architecture", "seed"]).layer.max().tolist() == [4, 1, 2, 4]
