"""Types at the sizes of their own configuration, streamed where they do not fit."""

import pytest
import torch
from transformers import GPT2Config

from rankfall.census.released import Streamed, released_example, streamed_rows
from rankfall.errors import RankfallError
from rankfall.run.plan import make_plan


def tiny() -> GPT2Config:
    return GPT2Config(n_layer=3, n_embd=16, n_head=2, vocab_size=50)


def test_streamed_states_are_those_of_a_pass() -> None:
    rows = streamed_rows(tiny(), 0, 8)
    assert [row["layer"] for row in rows] == [0, 1, 2, 3] and rows[0]["samples"] == 2 and rows[0]["width"] == 16
    assert [row["name"] for row in rows] == [None, "h.0", "h.1", "h.2"]
    assert all(0 < row["residual"] <= 1 and row["norm_of_state"] > 0 for row in rows)
    assert streamed_rows(tiny(), 0, 8) == rows and streamed_rows(tiny(), 1, 8) != rows


def test_a_type_that_does_not_fit_is_streamed() -> None:
    with pytest.raises(Streamed) as raised:
        released_example("llama", 0, 8, 16)
    assert raised.value.weights > 6_000_000_000 and not torch.is_tensor(raised.value.config)


def test_an_unknown_size_is_refused_by_the_plan() -> None:
    measures = {"census": {"measure": "census_layers", "types": ["bert"], "size": "relased"}}
    with pytest.raises(RankfallError, match=r"size.*relased.*small.*released"):
        make_plan({"name": "one", "results": "results/one", "measures": measures})
