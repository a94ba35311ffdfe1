"""Names in figures and tables: components and real models, short and still told apart."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pandas import DataFrame

from rankfall.report.labels import labels, name_measurements

OPTION = st.sampled_from(["null", "true", "false", "1.0", "2.0", '"a"'])
COMPONENTS = st.builds(
    lambda name, options: f"{name}({', '.join(f'{key}={value}' for key, value in sorted(options.items()))})",
    st.sampled_from(["one", "two"]),
    st.dictionaries(st.sampled_from("abc"), OPTION, min_size=1),
)


@settings(max_examples=50, deadline=None)
@given(st.lists(COMPONENTS, unique=True))
def test_different_values_have_different_labels(values: list[str]) -> None:
    short = labels(values)
    assert len(set(short.values())) == len(values)
    assert all(short[value].startswith(value.partition("(")[0]) for value in values)


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
