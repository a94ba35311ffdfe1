"""Guards the reference bands: the table is the package's, its command makes it, and a report is set beside the right one."""

import json
from importlib import resources

import pytest
import torch
from torch import nn

from benchmarks import bands as made
from rankfall.check.bands import band_for, kind_of, table
from rankfall.check.report import check
from rankfall.models.modules.examine import examine


def test_the_table_ships_and_has_bands_of_every_kind_and_depth():
    found = json.loads(resources.files("rankfall.check").joinpath("bands.json").read_text())
    assert found == table()
    assert len(found["bands"]) >= 6
    for by_depth in found["bands"].values():
        assert set(by_depth) == {str(depth) for depth in made.DEPTHS}
        assert all(0 < entry["low"] <= entry["high"] < 1.1 and entry["of"] for entry in by_depth.values())
    named = {name for by_depth in found["bands"].values() for entry in by_depth.values() for name in entry["of"]}
    assert named == {*made.TYPES, *made.OWN} - {"falcon"}


@pytest.mark.parametrize("name", list(made.OWN))
def test_what_is_measured_again_is_within_the_table(name):
    for kind, by_depth in made.bands((2, 4), 2, [name]).items():
        for depth, entry in by_depth.items():
            known = table()["bands"][kind][depth]
            assert name in known["of"]
            assert known["low"] <= entry["low"] * (1 + 1e-3) and entry["high"] <= known["high"] * (1 + 1e-3)


def test_a_report_says_where_it_lies():
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    model, x = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False), torch.randn(2, 9, 16)
    (flow,) = examine(model, x).flows
    assert kind_of(flow) == "both ways, attention, post-norm"
    (low, high), of = band_for(flow)
    entry = table()["bands"][kind_of(flow)]["4"]
    assert (low, high) == (entry["low"], entry["high"])
    assert of == f"{len(entry['of'])} architectures of this kind with 4 layers"
    with torch.no_grad():
        for parameter in model.layers.parameters():
            parameter.mul_(4)
    (report,) = check(model, x, changes=False)
    assert f"That is below what {of} keep at birth" in " ".join(report.verdict)


def test_far_deeper_than_the_table_there_is_no_band():
    layer = nn.TransformerEncoderLayer(8, 2, 8, batch_first=True)
    (flow,) = examine(nn.TransformerEncoder(layer, 60, enable_nested_tensor=False), torch.randn(2, 3, 8)).flows
    assert band_for(flow) is None
