"""A mixer that reads nothing that can be left unread goes through every table, figure, headline, chart and finding."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from rankfall import cli, components
from rankfall.design import UNREAD
from rankfall.measure.context import Context
from rankfall.overview.scorecard.measure import scorecard
from rankfall.report import style, tables
from rankfall.report.headlines import headlines
from rankfall.report.page import build
from rankfall.report.page.build import PageInputs, page
from rankfall.report.page.chart import charts
from rankfall.report.page.findings import findings
from rankfall.report.page.rows import chart_rows
from rankfall.run.plan import make_plan

pytestmark = pytest.mark.long

MIXER = '''
"""A mean over earlier tokens."""

import torch
from torch import nn

from rankfall.nets.primitives import no_dropout
from rankfall.nets.primitives import Linear, Sizes

IGNORES = ("normaliser", "mask", "heads", "head_width")
OFFERS = ()


class Mean(nn.Module):
    def __init__(self, sizes: Sizes, position, normaliser, mask, site):
        super().__init__()
        self.value = Linear(sizes, sizes.width, sizes.width, "value")

    def forward(self, x, drop=no_dropout):
        return self.value(x).cumsum(2) / torch.arange(1, x.shape[2] + 1).unsqueeze(-1)
'''
MEASURES: dict[str, dict[str, Any]] = {
    "residuals": {"samples": 2, "best": False},
    "law": {"samples": 2},
    "token_identity": {"epochs": 1},
    "attribution": {"samples": 1},
}
CONFIG: dict[str, Any] = {
    "name": "ignoring",
    "results": ".",
    "tasks": {"sorting": {"train": 60, "test": 30, "length": 6, "symbols": 5}},
    "architectures": {
        "mean": {"attention": "meanlab:Mean", "depth": 2, "width": 8},
        "bare": {"attention": "meanlab:Mean", "depth": 2, "width": 8, "position": "none", "residual": "none", "norm": "none"},
        "softmax": {"depth": 2, "width": 8},
    },
    "trainings": {"init": {}, "short": {"epochs": 1, "batch": 3}},
    "grid": [{"task": "sorting", "architecture": ["mean", "bare", "softmax"], "training": ["init", "short"], "seed": [0, 1]}],
    "measures": MEASURES | {"scorecard": {}},
    "compute": {"engine": "plain"},
}  # fmt: skip


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """All tables of such a run, written and read."""
    folder = tmp_path_factory.mktemp("ignoring")
    (folder / "meanlab.py").write_text(MIXER)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        patch.chdir(folder)
        Path("config.json").write_text(json.dumps(CONFIG))
        for task, shard in make_plan(CONFIG).shards:
            common = ["--config", "config.json", "--task", task, "--shard", shard]
            assert cli.main(["train", *common, "--out", "cells.parquet"]) == 0
            for name in MEASURES:
                assert cli.main(["measure", *common, "--measure", name, "--out", f"{name}.parquet"]) == 0
        few = {"normalisers": ["softmax"], "positions": ["none"], "masks": ["none", "causal"], "sentinels": ["none"]}
        few["attentions"] = ["multihead", "meanlab:Mean"]
        orders = components.load("measure", "orders")(Context(), **few, blocks=["skip, post-norm"], heads=[2], draws=2)
        probe = components.load("measure", "probe")(Context(), **few, tokens=4, draws=2)
        for name, rows in (("orders", orders), ("probe", probe), ("probe_trained", [])):
            tables.write(name, rows, folder / f"{name}.parquet")
        frames = {
            name: tables.read_frame(folder / f"{name}.parquet", name)
            for name in ("cells", "orders", "probe", "probe_trained", *MEASURES)
        }
        tables.write("scorecard", scorecard(Context(table=frames.get)), folder / "scorecard.parquet")
        frames["scorecard"] = tables.read_frame(folder / "scorecard.parquet", "scorecard")
        yield frames.get


def test_what_it_does_not_read_is_null_and_measured_once(read: Any) -> None:
    """With a mask and without, the same attention was two rows, of which one said causal."""
    for name in ("orders", "probe"):
        table = read(name)
        means = table[table.attention == "meanlab:Mean"]
        assert means["mask"].isna().all() and means.normaliser.isna().all()
        by = [column for column in ("block", "biases", "quantity", "position", "sentinels") if column in means]
        assert not means.duplicated(by).any()
        assert set(table[table.attention == "multihead"]["mask"]) == {"none", "causal"}
    cells = read("cells")
    assert cells[cells.architecture != "softmax"][list(UNREAD["attention"])].isna().all(axis=None)


def test_headlines(read: Any) -> None:
    scores = read("scorecard")
    bare = scores[scores.architecture == "bare"]
    assert bare["mask"].isna().all() and bare.normaliser.isna().all() and (scores.heads == 2).all()
    assert set(scores.setting) == {"sorting, init, depth 2", "sorting, short, depth 2"}  # the others' sizes are theirs
    assert bare.order.notna().all() and (bare.order == bare.block_order).all()
    assert scores[scores.architecture == "mean"].block_order.notna().all()
    for headline in headlines():
        assert (scores[headline.name].isna() == (scores[f"{headline.name}_reason"] != "")).all(), headline.name
    assert scores.residual_last.notna().all() and scores.identity_rate.notna().all()
    cells = read("cells")
    assert (cells.step_ms.isna() == (cells.epochs == 0)).all()
    assert (cells.step_ms < 1000 * cells.seconds / cells.steps)[cells.epochs > 0].all()


def missing_words(text: str) -> set[str]:
    return {"nan", "None", "<NA>"} & set(text.replace("(", " ").replace(",", " ").split())


@pytest.mark.parametrize("name", ["orders", "probe"])
def test_figures(read: Any, name: str) -> None:
    with style.apply_style():
        picture = components.load("figure", name)(read)
        picture.figure.savefig(io.BytesIO(), format="png")
    assert not missing_words(picture.caption), picture.caption


def test_charts_findings_and_the_page(read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["cells", "orders", "probe", "scorecard", *MEASURES]
    for chart in charts():
        if read(chart.table) is not None:
            rows = chart_rows(chart, read(chart.table))
            parts = rows.drop(columns=chart.measured)[[*{"mask", "normaliser"} & set(rows)]]
            assert not parts.isna().any(axis=None), chart.name
    scores = read("scorecard")
    for some in (scores, *(part for _, part in scores.groupby("setting"))):
        for finding in findings(lambda name, some=some: some if name == "scorecard" else read(name)):
            assert not missing_words(finding.answer), finding.answer
    monkeypatch.setattr(build, "bundle", lambda: "library")
    assert "bare" in page(PageInputs("ignoring", names, read, [], {}, "0"))
