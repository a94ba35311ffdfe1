"""Guards BUILDS: the key of a measure that builds its own networks has the components that it lists."""

import re
from pathlib import Path

import pytest

from rankfall.run.config.types import read
from rankfall.run.plan import make_plan

ROOT = Path(__file__).parents[3]
NETWORK = """
import torch
from rankfall.design import Architecture, Component
from rankfall.nets.network import Shape, build

TABLE = "path_counts"
NEEDS = "nothing"
BUILDS = {"attention": ["multihead"], "block": ["attention"], "embedding": ["linear"], "head": ["regression"], "init": ["published"],
          "mask": ["none"], "mlp": ["none"], "norm": ["none"], "normaliser": ["softmax"], "position": ["none"], "residual": ["none"],
          "sentinels": ["none"]}

def own(context, *, normaliser: str = "softmax"):
    parts = {kind: Component(names[0]) for kind, names in BUILDS.items()} | {"normaliser": Component(normaliser)}
    network = build(Architecture(name="own", depth=1, width=4, heads=1, **parts), Shape("vectors", "values", 3, 1, 1), 1, torch.float64)
    total = sum(float(p.numel()) for p in network.parameters())
    return [{"model": "m", "depth": 1, "heads": 1, "log10_paths": 0.0, "proportion": total, "length": 1}]
"""


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
