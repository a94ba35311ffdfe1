"""Guards each headline number of a network: lines with a known answer, and a reason wherever there is no number."""

from typing import Any

import pandas as pd
import pytest

from rankfall.identity.attention_identity.shown import TOLERANCE
from rankfall.rank.law.shown import log_residual
from rankfall.report.headlines import by_name, headlines
from rankfall.report.quantities import STUDIES
from rankfall.report.schema import schema


def residual_rows(values: list[float], key: str = "a") -> pd.DataFrame:
    kind = {"place": "state", "quantity": "residual", "matrix_norm": "composite", "centre": "mean", "floor_share": 0.25}
    rows = [kind | {"key": key, "layer": layer, "value": value} for layer, value in enumerate(values)]
    others = [row | {"value": 9.0, name: other} for row in rows for name, other in
              (("place", "before norm1"), ("quantity", "sigma_ratio"), ("matrix_norm", "l1"), ("centre", "best"))]  # fmt: skip
    return pd.DataFrame([*others, *rows])


def number_of(name: str, table: pd.DataFrame) -> pd.DataFrame:
    headline = by_name(name)
    return headline.number(headline.rows(table))


def only(numbers: pd.DataFrame) -> tuple[float, str]:
    """Return the one number of a table, and why there is none."""
    (row,) = numbers.itertuples()
    return row.number, row.why


def test_residual_that_decays_exponentially() -> None:
    """0.8 * 2^(-l / 1.5) is half of its first value at 1.5 and below 0.1 from layer 5 on: 0.8 / 8 is 0.1 at 4.5."""
    table = residual_rows([0.8 * 2 ** (-layer / 1.5) for layer in range(8)])
    assert only(number_of("halving_depth", table)) == (pytest.approx(1.5), "")
    assert only(number_of("depth_below_tenth", table)) == (5.0, "")
    assert only(number_of("residual_last", table)) == (pytest.approx(0.8 * 2 ** (-7 / 1.5)), "")
    assert number_of("residual_last", table).floor.tolist() == [0.25]


def test_residual_that_is_zero() -> None:
    assert only(number_of("halving_depth", residual_rows([0.9, 0.6, 0.0])))[0] == 2.0
    for name in ("halving_depth", "depth_below_tenth", "residual_last"):
        number, why = only(number_of(name, residual_rows([0.0, 0.5])))
        assert number != number and "equal tokens" in why


def test_an_underflow_is_no_collapse() -> None:
    """Bare gated units kept 0.9 for six layers, then states and residuals underflowed, and the scorecard said 0.000."""
    nan, why = float("nan"), "a state beyond the range of float64"
    table = residual_rows([0.95, 0.94, 0.9, nan, nan]).assign(
        value_reason=lambda rows: rows.value.isna().map({True: why, False: ""})
    )
    for name in ("residual_last", "halving_depth", "depth_below_tenth"):
        number, reason = only(number_of(name, table))
        assert number != number and reason == f"from layer 3 on there is no residual: {why}"
    table = residual_rows([0.8, 0.4, 0.05, nan]).assign(value_reason="")
    assert only(number_of("halving_depth", table)) == (1.0, "")
    assert only(number_of("depth_below_tenth", table)) == (2.0, "")
    assert only(number_of("residual_last", residual_rows([nan, nan])))[1] == "from layer 0 on there is no residual"


def test_layers_in_any_order_and_many_cells() -> None:
    both = pd.concat([residual_rows([0.8, 0.4, 0.1], "a"), residual_rows([0.8, 0.2, 0.05], "b")])
    depths = number_of("halving_depth", both.sample(frac=1, random_state=0)).set_index("key").number
    assert depths.to_dict() == pytest.approx({"a": 1.0, "b": 0.5})


def test_a_residual_without_rounding_is_a_mean_over_samples_above_their_floor() -> None:
    rows = [
        {"key": key, "layer": layer, "sample": sample, "log10_residual": -10.0**layer - sample,
         "floor": key == "noise" and layer == 2 and sample == 1}
        for key in ("clear", "noise") for layer in (1, 2) for sample in (0, 1)
    ]  # fmt: skip
    rows += [{"key": "equal", "layer": 1, "sample": 0, "log10_residual": None, "floor": False}]
    result = number_of("log_residual", pd.DataFrame(rows)).set_index("key")
    assert result.number["clear"] == -100.5 and result.number[["noise", "equal"]].isna().all()
    assert result.why.to_dict() == {
        "clear": "", "noise": "at layer 2 it is rounding noise, or 0", "equal": "at layer 1 it is rounding noise, or 0",
    }  # fmt: skip


def test_short_paths() -> None:
    """At depth 6 short is up to 2: the best is .45 of the largest sets, 1/4 of the way from .35 to .75."""
    rows: list[dict[str, Any]] = [{"kind": "whole", "accuracy": 0.75}, {"kind": "chance", "accuracy": 0.35}]
    for length, accuracies in {1: (0.35, 0.45), 2: (0.44, 0.46), 3: (0.7, 0.7)}.items():
        rows += [
            {"kind": "path", "evaluation": "recomputed", "length": length, "paths": 8, "accuracy": a}
            for a in accuracies
        ]
    rows += [{"kind": "path", "evaluation": "recomputed", "length": 1, "paths": 2, "accuracy": 0.9}]
    rows += [{"kind": "path", "evaluation": "frozen", "length": 1, "paths": 8, "accuracy": 0.9}]
    table = pd.DataFrame(rows).assign(key="a", depth=6)
    assert only(number_of("short_paths", table)) == (pytest.approx(0.25), "")
    low = table.assign(accuracy=table.accuracy.where(table.kind != "whole", 0.38))
    number, why = only(number_of("short_paths", low))
    assert number != number and why == "the network itself is 0.030 above chance"


def test_kept_is_at_the_length_nearest_to_four() -> None:
    table = pd.DataFrame(
        {"key": "a", "times": [0.5, 1.0, 2.0, 3.0, 8.0], "kept": [1.0, 1.0, 0.9, 0.8, 0.7], "refused": ""}
        | {"chance": 0.2, "accuracy_trained": [0.9, 0.9, 0.9, 0.4, 0.9]}
    )
    assert only(number_of("kept", table)) == (pytest.approx(0.8), "")
    assert number_of("kept", table).chance.tolist() == pytest.approx([0.5])  # what guessing has, of .4
    refused = table.assign(kept=[1.0, 1.0, 0.9, None, None], refused=["", "", "", "longer than its table", "longer"])
    number, why = only(number_of("kept", refused))
    assert number != number and why == "longer than its table"


def test_probe_is_at_the_longest_trained_length() -> None:
    table = pd.DataFrame(
        {"key": "a", "length": [6, 8, 16], "beyond": [False, False, True], "accuracy": [1.0, 0.75, 0.1]}
        | {"chance": [1 / 6, 1 / 8, 1 / 8], "ceiling": [1.0, 0.875, 0.5]}
    )
    assert only(number_of("probe_accuracy", table)) == (0.75, "")
    assert number_of("probe_accuracy", table)[["chance", "ceiling"]].to_numpy().tolist() == [[0.125, 0.875]]


def test_null_dimension_is_the_mean_over_heads_at_the_last_layer_and_longest_text() -> None:
    rows = [
        {"layer": layer, "attention_head": head, "tokens": tokens, "tolerance": tolerance, "quantity": quantity,
         "value": 100.0 * layer + 10.0 * (tokens == 9) + head + 0.1 * (tolerance > 1e-6) + 0.01 * (quantity == "rank")}
        for layer in (1, 2) for head in (0, 1) for tokens in (5, 9) for tolerance in (1e-6, 1e-3) for quantity in ("null", "rank")
    ]  # fmt: skip
    table = pd.DataFrame(rows).assign(key="a", left_out="nothing")
    assert only(number_of("null_dimension", table)) == (pytest.approx(210.5), "")


def test_identity_and_own_share() -> None:
    identity = pd.DataFrame(
        {
            "key": "a", "layer": [1, 2, 2, 2], "map": ["linear", "linear", "mlp", "linear"], "loss": "cosine",
            "trained_layer": [1, 2, 2, 1], "candidates": "sentence", "distance": "cosine", "rate": [0.9, 0.7, 0.8, 0.1],
            "chance": 0.125,
        }
    )  # fmt: skip
    assert only(number_of("identity_rate", identity)) == (0.7, "")
    assert number_of("identity_rate", identity).chance.tolist() == [0.125]
    share = pd.DataFrame(
        {"key": "a", "layer": [1, 2, 2], "method": ["jacobian", "jacobian", "norms"], "kept_tokens": "all", "quantity": "own share",
         "value": [0.6, 0.4, 0.5], "samples": 3, "tokens": 24}
    )  # fmt: skip
    assert only(number_of("own_share", share)) == (0.4, "")
    assert number_of("own_share", share).chance.tolist() == [0.125]


def test_accuracy() -> None:
    nan = float("nan")
    cells = pd.DataFrame({"key": ["a", "b", "c"], "test_accuracy": [0.9, nan, 0.5], "chance": [0.3, nan, 0.3],
                          "attainable": [0.95, None, None]})  # fmt: skip
    over = number_of("over_chance", cells).set_index("key")
    assert over.number["a"] == pytest.approx(0.6) and over.why["b"] == "its task has no accuracy"
    assert over.ceiling["a"] == pytest.approx(0.65) and over.ceiling["c"] != over.ceiling["c"]
    right = number_of("accuracy", cells).set_index("key")
    assert (right.number["a"], right.chance["a"], right.attainable["a"]) == (0.9, 0.3, 0.95)
    assert right.why["b"] == "its task has no accuracy"


@pytest.mark.parametrize("headline", headlines(), ids=lambda headline: headline.name)
def test_a_definition_names_columns_that_exist(headline: Any) -> None:
    columns = {column.name for column in schema(headline.table).columns}
    assert set(headline.columns) <= columns
    assert headline.study in STUDIES and headline.components == (headline.table in ("orders", "probe"))


@pytest.mark.parametrize("place", [{"layer": 2}, {"tokens": 8}, {"attention_head": 1}])
def test_null_dimension_of_the_last_layer_of_the_longest_text_of_all_heads_or_none(place: dict[str, int]) -> None:
    base = {"key": "a", "layer": 1, "tokens": 4, "attention_head": 0, "quantity": "null", "left_out": "nothing",
            "tolerance": TOLERANCE, "value": 3.0}  # fmt: skip
    number, _ = only(number_of("null_dimension", pd.DataFrame([base, base | place | {"value": None}])))
    assert number != number


def test_a_state_beyond_the_range_of_float64_is_no_rounding() -> None:
    rows = pd.DataFrame(
        {
            "key": ["a"] * 3, "layer": [0, 1, 2], "sample": 0, "log10_residual": [-0.1, -0.2, None], "floor": False,
            "value_reason": ["", "", "the state, or one before it, is zero"],
        }
    )  # fmt: skip
    (result,) = log_residual(rows).itertuples()
    assert result.number != result.number
    assert result.why == "from layer 2 on there is none: the state, or one before it, is zero"
