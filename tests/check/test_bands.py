"""Guards the reference bands: the table is the package's, its commands make it, and a report is set beside the right one."""

import json
from importlib import resources

import pytest
import torch
from torch import nn

from benchmarks import bands as benchmark
from rankfall.check.bands import BIRTH, TRAINED, bands_for, kind_of, no_band, table
from rankfall.check.checks.rank import explain_rank
from rankfall.check.report import check
from rankfall.streams.examine import examine


def encoder(depth, width=16, **options):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(width, 2, 2 * width, batch_first=True, **options)
    return nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)


def test_the_table_ships_and_has_bands_of_every_kind_and_depth():
    result = json.loads(resources.files("rankfall.check").joinpath("bands.json").read_text())
    assert result == table()
    birth = result["bands"][BIRTH]
    assert len(birth) >= 7
    for by_depth in birth.values():
        assert set(by_depth) == {str(depth) for depth in benchmark.DEPTHS}
    for by_depth in (one for when in (BIRTH, TRAINED) for one in result["bands"][when].values()):
        for depth, entry in by_depth.items():
            assert len(entry["low"]) == len(entry["high"]) == int(depth) + 1 and entry["of"]
            assert all(0 < low <= high < 1.5 for low, high in zip(entry["low"], entry["high"]))
    named = {name for by_depth in birth.values() for entry in by_depth.values() for name in entry["of"]}
    assert named == {*benchmark.TYPES, *benchmark.OWN, benchmark.MIXER} - {"falcon"}


@pytest.mark.parametrize("name", ["our post-norm", benchmark.MIXER])
def test_what_is_measured_again_is_within_the_table(name):
    for kind, by_depth in benchmark.bands_at_birth((2, 4), 2, [name]).items():
        for depth, entry in by_depth.items():
            known = table()["bands"][BIRTH][kind][depth]
            assert name in known["of"]
            assert all(a <= b * (1 + 1e-3) for a, b in zip(known["low"], entry["low"], strict=True))
            assert all(b <= a * (1 + 1e-3) for a, b in zip(known["high"], entry["high"], strict=True))


def test_a_report_says_where_it_lies():
    model, x = encoder(4), torch.randn(2, 9, 16)
    (flow,) = examine(model, x).flows
    assert kind_of(flow) == "both ways, attention, post-norm"
    birth, trained = bands_for(flow)
    entry = table()["bands"][BIRTH][kind_of(flow)]["4"]
    assert (list(birth.low), list(birth.high)) == (entry["low"], entry["high"])
    assert birth.of == f"{len(entry['of'])} architectures of this kind with 4 layers"
    assert (birth.when, trained.when, trained.depth) == (BIRTH, TRAINED, 4)
    with torch.no_grad():
        for parameter in model.layers.parameters():
            parameter.mul_(4)
    (report,) = check(model, x, changes=False)
    words = " ".join(explain_rank(report))
    assert f" is below what {birth.of} keep at birth" in words
    assert f"After training {trained.of} kept" in words
    assert (
        trained.of
        == f"{len(table()['bands'][TRAINED][kind_of(flow)]['4']['of'])} small trained networks of this kind with 4 layers"
    )


@pytest.mark.long
def test_where_there_is_no_band_it_is_said():
    (deep,) = examine(encoder(60, 8), torch.randn(2, 3, 8)).flows
    assert bands_for(deep) == []
    assert no_band(deep) == "the table has networks of 2, 4, 6, 12, 24 layers, none near 60"
    (known,) = examine(encoder(2, 8), torch.randn(2, 3, 8)).flows
    assert no_band(known) == ""
    (report,) = check(encoder(60, 8), torch.randn(2, 3, 8), changes=False)
    assert "none near 60" in report.reasons["reference band"]
