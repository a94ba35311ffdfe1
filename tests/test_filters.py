"""Guards filters: a field of a cell and the same value in a table are matched by one rule."""

import numpy as np
import pytest

from rankfall.design import Component
from rankfall.filters import matches, matches_in_table, parts


def test_reads_what_tables_write() -> None:
    for component in (
        Component(name="local", options={"causal": True, "window": 4}),
        Component(name="multistep", options={"milestones": [15, 30], "factor": 0.91, "mode": "a, b=c"}),
        Component(name="none", options={}),
    ):
        config = {"name": component.name, **component.options}
        assert parts(str(component)) == parts(config)
    assert parts(24) == ("24", {})


@pytest.mark.parametrize("wanted", ["layer", {"name": "layer", "eps": 1e-12}, "layer(eps=1e-12)", {"name": "layer"}])
def test_a_component_by_its_name_and_some_options(wanted: object) -> None:
    found = Component("layer", {"eps": 1e-12, "gain": 1.0})
    assert matches(found, wanted) and matches_in_table(str(found), wanted)


@pytest.mark.parametrize(
    "wanted", ["rms", {"name": "layer", "eps": 1e-5}, {"name": "layer", "other": None}, "layer(eps=1e-5)", 3]
)
def test_another_component(wanted: object) -> None:
    found = Component("layer", {"eps": 1e-12})
    assert not matches(found, wanted) and not matches_in_table(str(found), wanted)


def test_numbers() -> None:
    assert matches(24, 24) and matches_in_table(np.int64(24), 24)
    assert not matches(24, 2) and not matches_in_table(np.int64(24), 2) and not matches_in_table(np.int64(24), "24")
    assert matches(1e-3, "1e-3") and matches_in_table(np.float64(1e-3), "1e-3")
    assert matches_in_table(np.float64(2.0), 2) and not matches(1, True) and not matches(True, 1)
