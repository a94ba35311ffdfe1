"""Normalisers from a user's own file through measures and figures: no crash, no floor drawn as a line, no line missing in silence."""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from helpers import config, data_of
from seen import line

from rankfall import components
from rankfall.measure.context import Context
from rankfall.nets.network import Shape, build
from rankfall.report import style, tables
from rankfall.report.colours import colour
from rankfall.report.rows import cell_columns
from rankfall.run.plan import make_plan

USERS = Path(__file__).parents[1] / "rank" / "foreign.py"
INPUTS = torch.randint(6, (1, 8, 5), generator=torch.Generator().manual_seed(0))
DATA = data_of(INPUTS)
OWN: dict[str, Any] = {
    "sparse": "mylab:sparsemax",
    "cool": {"name": "mylab:soft", "temperature": 0.5},
    "differential": "mylab:Differential",
    "single": "mylab:single",  # for which there is no centred form
    "plain": "softmax",
}
ALONE = {"depth": 6, "heads": 2, "width": 8, "norm": "none", "residual": "none", "position": "none"}
SMALL: dict[str, dict[str, Any]] = {
    "law": {"samples": 2},
    "paths": {"counts": [2], "repeats": 1},
    "residuals": {"samples": 2, "best": False},
}
Read = Callable[[str], pd.DataFrame]


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Read:
    """All three tables of these networks, as the pipeline writes and reads them; the names are nobody's defaults."""
    folder = tmp_path_factory.mktemp("lab")
    shutil.copy(USERS, folder / "mylab.py")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        raw = config(task={"symbols": 6}) | {
            "architectures": {name: ALONE | {"normaliser": normaliser} for name, normaliser in OWN.items()},
            "trainings": {"raw": {"epochs": 0}},
        }
        raw["tasks"] = {"own": {"task": "sorting", **raw["tasks"]["sorting"]}}
        raw["grid"] = [{"task": "own", "architecture": list(OWN), "training": "raw", "seed": 0}]
        rows: dict[str, list[dict[str, Any]]] = {"law": [], "paths": [], "residuals": []}
        for cell in make_plan(raw).cells:
            network = build(cell.architecture, Shape("tokens", "classes", 5, 6, 6), 1, torch.float32)
            network.initialise([0])
            about = cell_columns(cell, {"status": "done", "reason": "", "device": "cpu", "stack": "s"})
            for name, found in rows.items():
                made = components.load("measure", name)(
                    Context(network.requires_grad_(False), DATA, [cell]), **SMALL[name]
                )
                found += [about | {key: value for key, value in row.items() if key != "member"} for row in made]
        rows["orders"] = components.load("measure", "orders")(
            Context(), normalisers=list(OWN.values()), positions=["none"], masks=["none"], sentinels=["none"],
            blocks=["column norm"], heads=[1, 2], draws=3,
        )  # fmt: skip
    del sys.modules["mylab"]
    for name, found in rows.items():
        tables.write(name, found, folder / f"{name}.parquet")
    return lambda name: tables.read_frame(folder / f"{name}.parquet", name)


def drawn(name: str, read: Read, folder: Path, **options: Any) -> style.Picture:
    """On paper too, in one kind of file: the same figures in all kinds are in test_rank_figures.py."""
    folder.mkdir(exist_ok=True)
    with style.apply_style():
        picture: style.Picture = components.load("figure", name)(read, **options)
        picture.figure.savefig(folder / f"{name}.png")
    assert (folder / f"{name}.png").stat().st_size > 5000
    return picture


@pytest.mark.long
def test_law(read: Read, tmp_path: Path) -> None:
    table = read("law")
    method = table.groupby("architecture").method.agg(lambda found: "/".join(sorted(set(found))))
    assert method.to_dict() == dict.fromkeys(OWN, "centred") | {"single": "float64"}
    assert table[(table.layer == 6) & (table.architecture != "single")].log10_residual.max() < -100
    assert not table[table.method == "centred"].floor.any()
    picture = drawn("law", read, tmp_path)
    assert set(OWN) <= {text.get_text() for text in picture.figure.axes[0].texts}
    clear = table[(table.architecture == "single") & ~table.floor]
    assert len(line(picture.figure.axes[0], colour("single"))) == clear.layer.nunique() < 7
    assert [one for one in picture.figure.axes[0].lines if one.get_marker() == "X"]
    assert "1 seed" in picture.caption and picture.numbers is not None
    about = picture.numbers.groupby("architecture")[["method", "why"]].first()
    assert about.method.to_dict() == method.to_dict()
    assert about.why["single"].startswith("mylab:single computes in single precision")
    ends = picture.numbers[(picture.numbers.layer == 6) & (picture.numbers.quantity == "log10_residual")]
    assert set(OWN) - {"single"} <= set(ends.architecture)  # equal rows have no residual


def test_orders(read: Read, tmp_path: Path) -> None:
    table = read("orders")
    res = table[(table.quantity == "res") & (table.heads == 2) & table.biases]
    found = res[res.block == "attention alone"].set_index("normaliser").order
    for name in ("mylab:sparsemax", "mylab:soft(temperature=0.5)", "mylab:Differential", "softmax"):
        assert found[name] == pytest.approx(3, abs=0.05), name
    assert set(res[res.block == "column norm"].normaliser) == set(found.index)
    assert set(table[table.normaliser == "mylab:single"].method) == {"float64"}
    failed = table[table.method == "none"]
    assert set(failed.normaliser) == {"mylab:Differential"}
    assert set(failed.heads) == {1}
    assert (table.reason[table.order.isna()] != "").all()
    picture = drawn("orders", read, tmp_path)
    assert picture.numbers is not None and set(picture.numbers.heads.dropna()) == {2}
    why = picture.numbers[picture.numbers.normaliser == "mylab:single"].reason
    assert why.str.startswith("depends on the draw").any()
    alone = drawn("orders", read, tmp_path / "one", heads=1)
    assert alone.numbers is not None
    assert alone.numbers[alone.numbers.normaliser == "mylab:Differential"].reason.str.contains("RuntimeError").all()
