"""The table of what sizes cost: lines take each other's places, in order; a line's process is measured."""

import pytest

from benchmarks import sizes
from benchmarks.sizes import Size, cost

SMALL = Size(2, 64, 96, 200)


def test_the_weights_of_a_size_are_those_of_the_model():
    transformers = pytest.importorskip("transformers")
    values = dict(word.split("=") for word in SMALL.settings()[1::2])
    model = transformers.LlamaModel(transformers.LlamaConfig(**{name: int(one) for name, one in values.items()}))
    matrices = sum(one.numel() for one in model.parameters() if one.dim() > 1)
    assert matrices == pytest.approx(SMALL.weights * 1e9)


@pytest.mark.slow
def test_a_line_is_of_a_process_of_its_own(monkeypatch):
    seconds, memory = cost(SMALL, True, 300)
    assert 0.5 < seconds < 300 and 0.1 < memory < 3
    monkeypatch.setattr(sizes, "command", lambda *given: ["sleep", "30"])
    assert cost(SMALL, True, 0.2) is None
