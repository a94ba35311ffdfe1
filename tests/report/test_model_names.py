"""What a reader sees of real models."""

import pytest
from pandas import DataFrame

from rankfall.report.labels import name_measurements

ROW = {
    "model": "a/x", "phase": "init", "definition": "clean", "text": "zipf", "tokenizer": None, "length": 8, "dtype": "float64",
    "revision": "r",
}  # fmt: skip


@pytest.mark.parametrize(
    ("other", "names"),
    [
        ({}, ["x, init"]),
        ({"phase": "pretrained"}, ["x, init", "x, pretrained"]),
        ({"definition": "bare"}, ["x, init", "x, init (bare)"]),
        ({"text": "random", "dtype": "float32"}, ["x, init (text zipf, float64)", "x, init (text random, float32)"]),
        ({"model": "b/x"}, ["a/x, init", "b/x, init"]),
    ],
)
def test_measurements_that_differ_have_names_that_differ(other: dict[str, object], names: list[str]) -> None:
    table = DataFrame([ROW, ROW | other])
    assert list(dict.fromkeys(name_measurements(table))) == names
