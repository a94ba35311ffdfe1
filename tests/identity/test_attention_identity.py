"""Guards the tables of attention identifiability: rows of cells and of models are as declared, and numbers are those of the library."""

from typing import Any

import pytest
import torch
from helpers import by_member, cells, data_of, each_network, network_of
from one_stack import chosen

from rankfall.errors import RankfallError
from rankfall.identity.attention_identity.measure import at_length, attention_identity
from rankfall.identity.cells import cell_views
from rankfall.measure.context import Context

INPUTS = torch.randint(6, (2, 20, 5), generator=torch.Generator().manual_seed(1))


def context(**architecture: Any) -> Context:
    own = {"position": "none"} | architecture
    found = cells(architecture=own, grid={"seed": [0, 1]})
    return Context(network=network_of(dtype=torch.float32, **own), data=data_of(INPUTS), cells=found)


def test_longer_sequences_lose_directions_and_shorter_ones_do_not() -> None:
    """Width of a head 4: nothing is free at 4 different tokens, more than tokens - 5 at 9 (repeated symbols have equal rows of T)."""
    rows = by_member(attention_identity, context(), lengths=[4, 9], samples=4)
    long = [row for row in rows if row["tokens"] == 9]
    assert min(row["value"] for row in long if row["quantity"] == "null_simplex") >= 4
    assert max(row["value"] for row in rows if row["quantity"] == "null_simplex" and row["tokens"] == 4) < 1
    assert min(row["value"] for row in long if row["quantity"] == "distance") > 0
    errors = [row["most"] for row in rows if row["quantity"].endswith("_error") and row["most"] is not None]
    assert max(errors) < 1e-10


def test_a_number_by_hand() -> None:
    measured = context()
    rows = by_member(attention_identity, measured, samples=3)
    _, view = cell_views(list(each_network(measured.network.double()))[1], INPUTS[1:, :3])
    entropies = torch.special.entr(view.weights[:, 1]).sum(-1).mean(-1)
    about = {"member": 1, "layer": 2, "attention_head": 1, "quantity": "entropy"}
    (row,) = chosen(rows, **about)
    assert row["value"] == pytest.approx(float(entropies.mean()), rel=1e-6) and row["count"] == 3
    assert row["deviation"] == pytest.approx(float(entropies.std()), rel=1e-4)


def test_lengths_are_beginnings_or_joined_samples() -> None:
    assert torch.equal(at_length(INPUTS, 3, 4), INPUTS[:, :4, :3])
    found = at_length(INPUTS, 12, 4)
    assert torch.equal(found[:, 1], torch.cat([INPUTS[:, 3], INPUTS[:, 4], INPUTS[:, 5, :2]], 1))
    with pytest.raises(RankfallError, match="raise its option test"):
        at_length(INPUTS, 101, 1)


def test_a_model_s_rows_are_those_of_its_table(tmp_path: Any) -> None:
    pytest.importorskip("transformers")
    from rankfall.identity.attention_identity.models import model_attention_identity
    from rankfall.identity.attention_identity.shown import model_figure as draw_figure
    from rankfall.report import tables
    from rankfall.report.conform import conform

    sizes = {"num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 40, "vocab_size": 99}
    sizes |= {"hidden_size": 24}
    rows = model_attention_identity(Context(), model="bert", config=sizes, text="zipf", samples=2, lengths=[6, 9])
    tables.write("model_attention_identity", rows, tmp_path / "x.parquet")
    frame = conform("model_attention_identity", rows).to_pandas()
    null = frame[(frame.quantity == "null_simplex") & (frame.tolerance == 1e-10) & (frame.left_out == "nothing")]
    assert null[null.tokens == 6].value.max() <= 1 and null[null.tokens == 9].value.min() >= 2
    picture = draw_figure(lambda name: tables.read_frame(tmp_path / "x.parquet", name))
    drawn = next(line for line in picture.figure.axes[0].lines if len(line.get_xdata()))
    assert list(drawn.get_xdata()) == [6, 9]  # a line over lengths, not a dot for each
    assert "without effect, its sum kept: 2 (bert, init, head width 6, 9 tokens)." in picture.caption
    first = frame[(frame.quantity == "first_mass") & (frame.left_out == "first token")]
    assert first.value.isna().all() and set(first.value_reason) == {"the first token is left out"}
