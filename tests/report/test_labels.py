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


@settings(max_examples=50, deadline=None)
@given(st.lists(COMPONENTS, unique=True))
def test_different_values_have_different_labels(values: list[str]) -> None:
    told = labels(values)
    assert len(set(told.values())) == len(values)
    assert all(told[value].startswith(value.partition("(")[0]) for value in values)
