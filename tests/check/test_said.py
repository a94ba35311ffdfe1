"""What a check says of a Mamba, an encoder-decoder and a hybrid; of healthy and steep models; and how it is laid out."""

import re

import pytest

from rankfall.check.bands import ReferenceBand
from rankfall.check.checks.rank import explain_rank, judge_rank
from rankfall.check.layer import LayerReport, Outcome, StreamReport
from rankfall.check.library import library_model
from rankfall.check.report import check
from rankfall.check.table import report_text


def reports_of(kind, **settings):
    model, inputs, name = library_model(kind, settings, small=True, length=12, seed=0, say=lambda line: None)
    return check(model, inputs, name=name, changes=False), name


def verdict(report):
    return [judge_rank(report).sentence, *explain_rank(report)]


def numbers(line):
    return [float(one) for one in re.findall(r"\d+\.\d+", line)]


def test_a_mamba_has_no_weights_and_tells_equal_tokens_apart():
    (report,), name = reports_of("mamba")
    words = report_text([report], name)
    assert "4 residual additions in 4 layers (4 mix tokens), width 32" in words.splitlines()[0]
    assert report.kind == "one way, mixing without softmax, pre-norm" and report.causal
    assert (
        "entropy" not in next(line for line in words.splitlines() if line.startswith("layer"))
        and "(attention: what mixes tokens here makes no weights by softmax" in words
    )
    assert "equal tokens come out as 12 different rows of 12" in words
    kept = report.result("rank-kept").sentence
    assert "tokens stay apart" in kept and numbers(kept)[:2] == [round(report.layers[n].residual, 2) for n in (0, -1)]


def test_a_hybrid_has_weights_in_its_attention_layers_only():
    (report,), name = reports_of("jamba")
    assert report.kind == "one way, hybrid, pre-norm"
    assert "8 residual additions in 4 layers (4 mix tokens, 4 act token by token)" in report_text([report], name)
    with_weights = [layer.layer for layer in report.layers if layer.entropy is not None]
    assert 0 < len(with_weights) < 4
    attention = [layer.layer for layer in report.layers if any("attn" in part for part in layer.parts)]
    assert with_weights == attention
    assert any("jamba" in band.of for band in report.bands)


def made_report(residuals, gradient, tried, bands=()):
    layers = [LayerReport(n, residual=value) for n, value in enumerate(residuals)]
    layers[0].gradient = gradient
    depth = len(residuals) - 1
    report = StreamReport("", "", "one way, attention, pre-norm", depth, 8, 5, 2, True, layers)
    report.interventions = [Outcome(name, [last], size) for name, last, size in tried]
    report.bands = list(bands)
    return report


def test_a_model_that_keeps_its_tokens_gets_no_advice():
    words = verdict(made_report([1.0, 0.9, 0.8], 1.2, [("smaller", 0.99, 1.0), ("larger", 0.3, 5.0)]))
    assert words[-1] == "It needs no change to keep its tokens apart; with the 2 that were tried it keeps 0.30 to 0.99."
    assert not [line for line in words if line.startswith("Tried")]


def test_a_band_of_another_depth_is_read_as_far_on_the_way():
    band = ReferenceBand("at birth", 2, (0.8, 0.6, 0.4), (1.0, 0.9, 0.5), "")
    assert band.at(0, 4) == (0.8, 1.0) and band.at(4, 4) == pytest.approx((0.4, 0.5))
    assert band.at(1, 4) == pytest.approx((0.7, 0.95)) and band.at(3, 4) == pytest.approx((0.5, 0.7))
    assert band.at(1, 1) == pytest.approx((0.4, 0.5))
