"""Labels and filters of figures: components as tables write them, short and still told apart."""

from rankfall.report.labels import labels, order


def test_an_option_is_said_where_it_differs() -> None:
    values = ["scaled(scale=0.1)", "scaled(scale=0.01)", "layer(eps=1e-12)"]
    assert list(labels(values).values()) == ["scaled 0.1", "scaled 0.01", "layer"]
    assert list(labels(["local(causal=true, window=4)", "local(causal=false, window=4)"]).values()) == [
        "local causal",
        "local",
    ]


def test_options_are_named_where_several_differ() -> None:
    values = [
        "published(scale=1.0, scores=1.0)",
        "published(scale=2.0, scores=1.0)",
        "published(scale=1.0, scores=30.0)",
    ]
    assert list(labels(values).values()) == ["published", "published scale 2.0", "published scores 30.0"]


def test_numbers_sort_by_size() -> None:
    given = ["scaled 0.1", "scaled 10", "scaled 0.03", "depth_scaled", "scaled 1e-3"]
    assert sorted(given, key=order) == ["depth_scaled", "scaled 1e-3", "scaled 0.03", "scaled 0.1", "scaled 10"]
