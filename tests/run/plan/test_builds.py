"""Guards BUILDS: the key of a measure that builds its own networks has the components that it lists."""

import re
from pathlib import Path

import pytest

from rankfall.run.config.types import read
from rankfall.run.plan import make_plan

ROOT = Path(__file__).parents[3]


@pytest.mark.long
def test_an_edit_of_one_normaliser_leaves_measures_without_it_alone() -> None:
    """`law` has the cell's own in the cell's key. `orders` measures them all."""
    measures = make_plan(read(ROOT / "config.yaml")).measures
    in_key = lambda name: re.findall(r"normalisers/([a-z]\w+)\.py", " ".join(measures[name].code))  # noqa: E731
    assert {name: in_key(name) for name in ("influence", "bert_law", "law")} == {
        "influence": ["softmax"],
        "bert_law": ["softmax"],
        "law": [],
    }
    assert {"l2", "urpe", "softmax"} <= set(in_key("orders"))
