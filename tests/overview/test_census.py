"""The census as tables: rows folded to one a type, the medians that the figure draws, and what the sentence counts."""

from types import SimpleNamespace
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from rankfall.measure.context import Context
from rankfall.overview.census.figure import census, streams_by_depth
from rankfall.overview.census.measure import census as measure_census
from rankfall.overview.census_wide import measure as census_wide
from rankfall.report.conform import conform


def types_of(table: pd.DataFrame) -> list[dict[str, Any]]:
    return measure_census(SimpleNamespace(table=lambda name: table))  # type: ignore[arg-type]


def rows(
    kind: str, stream: str, residuals: list[float], place: str = "before the branch", **more: Any
) -> list[dict[str, Any]]:
    about = {
        "type": kind, "size": "small", "stream": stream, "outcome": "measured", "reason": "", "transformers": "5.0", "family": kind,
        "year_reason": "",
        "layers": len(residuals) - 1, "norm_place": place, "norm": "layer", "mask": "causal", "mixer": "attention", "skips": True,
        "position": "none", "init_std_scaled": 0.1, "parallel": False, "width": 32,
    }  # fmt: skip
    return [
        about
        | {
            "layer": layer,
            "residual": value,
            "floor": 1e-15,
            "norm_of_state": 2.0**layer,
            "residual_layers_10": None if value is None else value / (layer + 1),
            "residual_san": None if value is None else value / 100,
        }
        | ({"order": float(layer)} if layer else {})
        | more
        for layer, value in enumerate(residuals)
    ]


REFUSED = {
    "type": "x", "size": "small", "stream": "", "outcome": "refused", "reason": "two answers", "transformers": "5.0", "family": "x",
    "year_reason": "",
}  # fmt: skip
NO_MODEL = REFUSED | {"type": "y", "outcome": "no model"}


def layers() -> pd.DataFrame:
    made = [
        *rows("a", "", [0.8, 0.4, 0.2]), *rows("b", "", [1.0, 0.9, 0.8]), *rows("c", "", [0.5, 0.5, 0.5]),
        *rows("t5", "decoder", [1.0, 0.5]), *rows("t5", "encoder", [1.0, 0.7, 0.6]), REFUSED, NO_MODEL,
        *rows("a", "", [0.8, 0.4, 0.4], size="wide", width=512, norm_place=None),
        *rows("b", "", [0.8, 0.4], size="wide"), *rows("t5", "encoder", [1.0, 0.7, 0.9], size="wide"), REFUSED | {"size": "wide"},
    ]  # fmt: skip
    return frame("census_layers", made)


def frame(name: str, made: list[dict[str, Any]]) -> pd.DataFrame:
    nullable = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
    table: pd.DataFrame = conform(name, made).to_pandas(types_mapper=nullable.get)
    return table


def test_a_type_has_one_row_of_the_stream_with_the_most_layers() -> None:
    found = {row["type"]: row for row in types_of(layers())}
    assert sorted(found) == ["a", "b", "c", "t5", "x", "y"]
    a = found["a"]
    assert a["kept"] == pytest.approx(0.25) and a["residual_first"] == 0.8 and a["residual_last"] == 0.2
    assert a["kept_layers_10"] == pytest.approx(0.25 / 3) and a["size"] == "small"
    assert a["norm_growth"] == 4.0 and (a["order"], a["order_least"], a["order_most"]) == (1.5, 1.0, 2.0)
    assert a["residual_san"] == pytest.approx(0.002)
    assert found["t5"]["stream"] == "encoder" and found["t5"]["kept"] == pytest.approx(0.6)
    nothing = types_of(frame("census_layers", rows("n", "", [0.5, None])))[0]  # type: ignore[list-item]
    assert nothing["kept"] is None and nothing["reasons"] == "residual_last: the state is not finite, or zero"
    equal = types_of(frame("census_layers", rows("n", "", [0.0, 0.0])))[0]
    assert equal["kept"] is None and "tokens are equal" in equal["reasons"]
    assert found["x"]["reason"] == "two answers" and found["x"].get("kept") is None
    conform("census", types_of(layers()))  # it is a table as declared


def test_the_figure_draws_medians_over_types() -> None:
    by_layer = layers()
    types = frame("census", types_of(by_layer))
    table = streams_by_depth(types, by_layer)
    assert sorted(table.type.unique()) == ["a", "b", "c", "t5"] and len(table) == 4 * 7
    half = table[table.share == 0.5].set_index("type").kept  # one of two layers, whose states stand in the table
    assert half.to_dict() == pytest.approx({"a": 0.5, "b": 0.9, "c": 1.0, "t5": 0.7})
    wide = frame("census_wide", census_wide(Context(table=lambda name: by_layer)))
    read = {"census": types, "census_layers": by_layer, "census_wide": wide}
    picture = census(read.__getitem__)
    assert picture.numbers is not None
    line = picture.numbers[(picture.numbers.value == "before the branch") & (picture.numbers.by == "norm_place")]
    # kept after two layers: 0.25, 0.8, 1, 0.6
    assert line[line.share == 1].middle.tolist() == [pytest.approx(0.7)] and set(line.types) == {4}
    assert "4 model types with skips of transformers 5.0 (4 of 5 eligible types are measured)" in picture.caption
    changed = picture.numbers[picture.numbers.by == "weights of the layers"].set_index("share").middle
    assert changed[10.0] == pytest.approx(changed[1.0] / 3)  # all have two layers


def test_small_and_wide_stand_side_by_side_where_they_have_as_many_layers() -> None:
    """`b` has other layers, `c` no wide model, `x` neither; a wide model is no type of its own."""
    a, t5 = census_wide(Context(table=lambda name: layers()))
    assert (a["type"], a["stream"], t5["type"], t5["stream"]) == ("a", "", "t5", "encoder")
    assert (a["kept"], a["kept_wide"], a["off"]) == pytest.approx((0.25, 0.5, 0.25))
    assert (a["width"], a["released_width"], a["layers"], a["norm_place"]) == (32, 512, 2, "before the branch")
    assert (t5["kept"], t5["kept_wide"], t5["off"]) == pytest.approx((0.6, 0.9, 0.3))
    assert census_wide(Context(table=lambda name: None)) == []
    conform("census_wide", [a, t5])
