"""Labels and filters of figures: components as tables write them, short and still told apart."""

from hypothesis import given, settings
from hypothesis import strategies as st

from rankfall.report.labels import labels

OPTION = st.sampled_from(["null", "true", "false", "1.0", "2.0", '"a"'])
COMPONENTS = st.builds(
    lambda name, options: f"{name}({', '.join(f'{key}={value}' for key, value in sorted(options.items()))})",
    st.sampled_from(["one", "two"]),
    st.dictionaries(st.sampled_from("abc"), OPTION, min_size=1),
)


def test_an_option_is_said_where_it_differs() -> None:
    values = ["scaled(scale=0.1)", "scaled(scale=0.01)", "layer(eps=1e-12)"]
    assert list(labels(values).values()) == ["scaled 0.1", "scaled 0.01", "layer"]
    assert list(labels(["local(causal=true, window=4)", "local(causal=false, window=4)"]).values()) == [
        "local causal",
        "local",
    ]


@settings(max_examples=50, deadline=None)
@given(st.lists(COMPONENTS, unique=True))
def test_different_values_have_different_labels(values: list[str]) -> None:
    told = labels(values)
    assert len(set(told.values())) == len(values)
    assert all(told[value].startswith(value.partition("(")[0]) for value in values)
