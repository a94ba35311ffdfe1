"""Guards the attribution table: its rows against the functions they come from, what is missing and why, and what the schema asks for."""

from typing import Any

import pandas as pd
import pytest
import torch
from helpers import by_member, cells, data_of, network_of
from one_stack import chosen

from rankfall.identity.attribution.measure import attribution
from rankfall.identity.attribution.shown import KEY, columns, equal_shares
from rankfall.identity.jacobian import every_block
from rankfall.identity.shares import BANDS
from rankfall.measure.context import Context

INPUTS = torch.randint(7, (2, 6, 5), generator=torch.Generator().manual_seed(1))


def context(**architecture: Any) -> Context:
    made = network_of(dtype=torch.float32, **architecture)
    return Context(network=made, data=data_of(INPUTS), cells=2 * cells(architecture=architecture))


def test_rows_are_what_the_blocks_say() -> None:
    given = context(mlp="gelu")
    rows = by_member(attribution, given, samples=3)
    network = given.network.double()
    with torch.no_grad():
        blocks = every_block(lambda x: list(network.layers(x))[1:], network.lift(INPUTS[:, :3]))["jacobian"].sqrt()
    share = blocks[1, 1] / blocks[1, 1].sum(-1, keepdim=True)  # (B, T, T) of the second member's last layer
    about = {"member": 1, "layer": 2, "method": "jacobian", "kept_tokens": "all"}
    (row,) = chosen(rows, **about, quantity="own share")
    own = share.diagonal(dim1=-2, dim2=-1)
    assert row["value"] == pytest.approx(float(own.mean()), rel=1e-12)
    assert row["median"] == pytest.approx(float(own.quantile(0.5)), rel=1e-12)
    assert row["deviation"] == pytest.approx(float(own.mean(1).std()), rel=1e-12)
    assert (row["samples"], row["tokens"], row["error"], row["directions"]) == (3, 15, None, None)
    (row,) = chosen(rows, **about, quantity="not first")
    assert row["value"] == pytest.approx(float((share.argmax(-1) != torch.arange(5)).double().mean()))
    (row,) = chosen(rows, **about | {"kept_tokens": "without first"}, quantity="own share")
    fewer = blocks[1, 1, :, 1:, 1:]
    fewer = fewer / fewer.sum(-1, keepdim=True)
    assert row["value"] == pytest.approx(float(fewer.diagonal(dim1=-2, dim2=-1).mean()), rel=1e-12)
    assert row["tokens"] == 12
    for method in ("jacobian", "jacobian x input", "attention", "rollout", "norms", "ablation"):
        for kept in ("all", "without first"):
            parts = chosen(rows, member=0, layer=1, method=method, kept_tokens=kept)
            total = sum(row["value"] for row in parts if row["quantity"] in ("own share", *BANDS))
            assert total == pytest.approx(1.0, rel=1e-12)
    fits_declaration(rows)


def fits_declaration(rows: list[dict[str, Any]]) -> None:
    """The columns are those of the table, and no two rows have the same key; null only where the schema has it."""
    declared = {column.name: column for column in columns().own}
    for row in rows:
        assert row.keys() - {"member"} == declared.keys()
        assert all(value is not None or declared[name].nullable for name, value in row.items() if name != "member")
        assert bool(row["value_reason"]) == (row["value"] is None)
    keys = [tuple(row[name] for name in ("member", *KEY.split())) for row in rows]
    assert len(set(keys)) == len(keys)


def test_equal_shares_are_one_in_as_many_as_there_are() -> None:
    """Ask all tokens of networks: 6 in 2 samples are 3 each; and some of models: the text has 8, or 7 where the first does not count."""
    networks = pd.DataFrame({"samples": [2, 4], "tokens": [6, 20]})
    assert equal_shares(networks).tolist() == [1 / 3, 1 / 5]
    models = pd.DataFrame(
        {"samples": [2, 2], "tokens": [3, 3], "length": [8, 8], "kept_tokens": ["all", "without first"]}
    )
    assert equal_shares(models).tolist() == [1 / 8, 1 / 7]
