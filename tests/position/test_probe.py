"""Check the probe's table: complete, no count against theory, and every difference with its reason."""

import sys
from typing import Any

import pandas as pd
import pytest
from helpers import cells

from rankfall.measure.context import Context
from rankfall.position.probe import measure as module
from rankfall.position.probe.figure import match_trained
from rankfall.position.probe.measure import probe
from rankfall.report.rows import cell_columns

GATED: dict[str, Any] = {"name": "gau", "key_width": 8}


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return module.probe(
        Context(),
        attentions=["multihead", GATED, "linear"],
        normalisers=["softmax", "zero_sum", "l2", "relu2", "urpe"],
        positions=["none", "symmetric", "rope", "shaw", "learned"],
        tokens=9,
        draws=4,
    )


@pytest.mark.slow
def test_the_whole_matrix_agrees() -> None:
    rows = module.probe(Context(), attentions=["multihead", GATED, "linear"])
    assert len(rows) >= 12 * 11 * 4 * 3
    test_no_count_contradicts_theory_and_every_difference_has_a_reason(rows)
    test_almost_all_agree(rows)


@pytest.mark.long
def test_no_count_contradicts_theory_and_every_difference_has_a_reason(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        assert row["agreement"] in ("agree", "fewer rows than theory allows", "not measured"), row
        assert bool(row["reason"]) == (row["agreement"] != "agree"), row
        if row["agreement"] == "not measured":
            assert row["attention"] == "linear" and ("acts on" in row["reason"] or "needs mask" in row["reason"]), row
            continue
        assert 1 <= row["untrained_least"] <= row["untrained_rows"] <= row["theory_rows"], row
        assert row["widest_equal"] < 1e-13, row
        assert row["narrowest_distinct"] is None or row["narrowest_distinct"] > 1e-10, row


def test_almost_all_agree(rows: list[dict[str, Any]]) -> None:
    """Where weights may be zero, few draws need not show all that is possible."""
    apart = [row for row in rows if row["agreement"] == "fewer rows than theory allows"]
    assert len(apart) <= 0.002 * len(rows)
    assert {row["normaliser"] for row in apart} <= {"relu2"}


@pytest.mark.parametrize(
    ("declared", "more", "agreement", "reason"),
    [
        ("", "", "theory undecided", "ROWS"),
        ("ROWS = 'constant'", "", "agree", ""),  # 1 - share, as a difference of two softmaxes has it
        ("ROWS = 'one'", "+ logits.sigmoid()", "more rows than theory allows",
         "theory rests on ROWS = 'one' of normaliser 'mylab_rows:half'"),
        ("ROWS = 'constant'", "+ logits.sigmoid()", "more rows than theory allows",
         "theory rests on ROWS = 'constant' of normaliser"),
        ("ROWS = 'free'", "+ logits.sigmoid()", "agree", ""),
    ],
)  # fmt: skip
def test_rows_that_sum_to_a_constant_and_declarations_that_are_wrong_or_missing(
    declared: str, more: str, agreement: str, reason: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = f"{declared}\n\n\ndef half(logits):\n    return logits.softmax(-1) / 2 {more}\n"
    (tmp_path / "mylab_rows.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mylab_rows", raising=False)
    (row,) = module.probe(
        Context(), normalisers=["mylab_rows:half"], positions=["none"], masks=["causal"], sentinels=["none"], tokens=6
    )
    assert (row["agreement"], row["untrained_rows"]) == (agreement, 1 if not more else 6)
    assert reason in row["reason"] and bool(row["reason"]) == bool(reason)
    assert (row["theory_rows"] is None) == (not declared)


@pytest.mark.long
def test_gates_differences_sinks_and_recurrences_agree_with_theory() -> None:
    """Softpick shows fewer rows than theory allows: where all scores are equal, its rows sum to one or to nothing."""
    scored = module.probe(
        Context(),
        attentions=["multihead", "gated", "differential"],
        normalisers=["softpick", "sink", "score_scale", "qk_norm"],
        positions=["none", "rope", "shaw"],
        masks=["none", "causal"],
        tokens=9,
        draws=3,
    )
    recurrent = module.probe(
        Context(),
        attentions=["retention", "gated_linear", "delta", "selective"],
        positions=["none", "rope", "learned"],
        masks=["causal"],
        tokens=9,
        draws=3,
    )
    apart = [row for row in [*scored, *recurrent] if row["agreement"] != "agree"]
    assert {row["normaliser"] for row in apart} <= {"softpick"} and len(apart) <= 2
    assert {row["agreement"] for row in apart} <= {"fewer rows than theory allows"}
    assert {row["theory_rows"] for row in recurrent} == {9}
    rotated = [row for row in scored if row["attention"] == "differential" and row["position"] == "rope"]
    assert {row["theory_rows"] for row in rotated} == {1, 9}


def test_trained_networks_stand_in_their_square_at_the_trained_length() -> None:
    mask = {"name": "local", "window": 2}
    networks = []
    for seed, passes in enumerate((True, True, False)):
        (cell,) = cells(architecture={"position": "toeplitz", "normaliser": "l2", "mask": mask}, grid={"seed": seed})
        about = cell_columns(cell, {"status": "done", "reason": "", "device": "cpu", "stack": "s"})
        for length in (8, 16, 4):  # the trained length is the longest that is not beyond it
            networks.append(about | {"length": length, "beyond": length > 8, "passes": passes and length == 8})
    choice = {"normalisers": ["softmax", "l2"], "positions": ["none", "symmetric", "toeplitz"], "masks": ["none", mask]}
    shown = pd.DataFrame(probe(Context(), sentinels=["none", "bos"], tokens=8, draws=3, **choice))
    learned, keys = match_trained(pd.DataFrame(networks), shown)
    ((index, seeds),) = learned.items()
    row = shown.loc[index]
    assert (row.normaliser, row.position, row["mask"], row.sentinels) == ("l2", "toeplitz", "local(window=2)", "none")
    assert len(keys) == 3 and seeds == (2, 3)
