"""The table of what sizes cost: lines take each other's places, in order; a line's process is measured."""

import pytest

from benchmarks import sizes
from benchmarks.sizes import BEGIN, END, HEAD, SIZES, Size, cells, cost, line, merged

SMALL = Size(2, 64, 96, 200)


def test_the_weights_of_a_size_are_those_of_the_model():
    transformers = pytest.importorskip("transformers")
    values = dict(word.split("=") for word in SMALL.settings()[1::2])
    model = transformers.LlamaModel(transformers.LlamaConfig(**{name: int(one) for name, one in values.items()}))
    matrices = sum(one.numel() for one in model.parameters() if one.dim() > 1)
    assert matrices == pytest.approx(SMALL.weights * 1e9)


def test_lines_take_each_others_places_in_the_order_of_sizes():
    page = f"before\n{BEGIN}\n{END}\nafter\n"
    small, large = SIZES[0], SIZES[2]
    page = merged(page, [line(large, True, (200.0, 3.0))])
    page = merged(page, [line(small, True, (9.0, 1.0)), line(small, False, (8.0, 2.0))])
    page = merged(page, [line(large, True, (100.0, 2.5))])
    rows = page.splitlines()
    assert rows[2:4] == list(HEAD) and rows[0] == "before" and rows[-1] == "after"
    assert [cells(one) for one in rows[4:-2]] == [
        (small.name, "whole"),
        (small.name, "streamed"),
        (large.name, "streamed"),
    ]
    assert "| 100 s | 2.5 GB |" in rows[6]


@pytest.mark.slow
def test_a_line_is_of_a_process_of_its_own(monkeypatch):
    seconds, memory = cost(SMALL, True, 300)
    assert 0.5 < seconds < 300 and 0.1 < memory < 3
    monkeypatch.setattr(sizes, "command", lambda *given: ["sleep", "30"])
    assert cost(SMALL, True, 0.2) is None
