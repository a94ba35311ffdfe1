"""Guards BUILDS: the key of a measure that builds its own networks has the components that it lists, and it can use no others."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from plans import changed, refusal

from rankfall import cli
from rankfall.nets.normalisers.l2 import l2
from rankfall.nets.normalisers.softmax import softmax
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
@pytest.mark.parametrize(
    ("measure", "normalisers"), [("influence", ["softmax"]), ("bert_law", ["softmax"]), ("law", [])]
)
def test_an_edit_of_one_normaliser_leaves_measures_without_it_alone(measure: str, normalisers: list[str]) -> None:
    """`law` has the cell's own in the cell's key. `orders` measures them all."""
    measures = make_plan(read(ROOT / "config.yaml")).measures
    in_key = lambda name: re.findall(r"normalisers/([a-z]\w+)\.py", " ".join(measures[name].code))  # noqa: E731
    assert in_key(measure) == normalisers
    assert {"l2", "urpe", "softmax"} <= set(in_key("orders"))


def test_a_name_that_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "buildlab1.py").write_text(NETWORK.replace('"softmax"]', '"sotfmax"]'))
    message = refusal(changed("measures", {"own": {"measure": "buildlab1:own"}}))
    assert message.startswith("measures.own: its component says BUILDS = ") and "did you mean 'softmax'?" in message


@pytest.mark.long
def test_building_of_anything_else_ends_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where the process has imported it before, as jobs have softmax, for trials of components."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)

    def measure(text: str, normaliser: str) -> int:
        (tmp_path / "buildlab2.py").write_text(text)
        sys.modules.pop("buildlab2", None)
        options: dict[str, Any] = {"measure": "buildlab2:own", "normaliser": normaliser}
        own = changed("measures", {"own": options}) | {"results": "results"}
        (tmp_path / "own.json").write_text(json.dumps(own))
        return cli.main(["measure", "--config", "own.json", "--measure", "own", "--out", "own.parquet"])

    assert l2 and softmax  # imported
    assert measure(NETWORK, "softmax") == 0
    assert measure(NETWORK, "l2") == 2
    assert "normalisers/l2.py, which is not in the key" in capsys.readouterr().err
    other = NETWORK.replace('"softmax"], "pos', '"l2"], "pos')
    assert measure(other, "softmax") == 2
    assert "normalisers/softmax.py, which is not in the key" in capsys.readouterr().err
    named = f'{NETWORK}PARTS = {{"normaliser": "normaliser"}}\n'
    assert measure(named, "l2") == 0  # an option says so, and that is in the key


@pytest.mark.parametrize(
    ("fact", "told"),
    [
        ('BUILDS = {"optimizer": ["adam"]}', "BUILDS must be a mapping of kinds of components (attention, block, "),
        (
            'BUILDS = {"mask": ["causal"]}\nNEEDS = "cells"',
            "what it BUILDS networks of, but its networks are those of cells",
        ),
    ],
)
def test_where_it_would_do_nothing_it_is_refused(
    fact: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "buildlab3.py").write_text(f'TABLE = "paths"\n{fact}\ndef own(context): ...\n')
    assert told in refusal(changed("measures", {"own": {"measure": "buildlab3:own"}}))
