"""Types at the sizes of their own configuration, streamed where they do not fit."""

import pytest
import torch
from transformers import GPT2Config

from rankfall.census.released import Streamed, released_example, streamed_rows
from rankfall.census.run import row_maker
from rankfall.errors import RankfallError


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


def test_an_unknown_size_is_told() -> None:
    with pytest.raises(RankfallError, match="neither of small and released"):
        row_maker(2, 8, 0, 20, 3, "large")
