"""Check the rank study on every part of attention: each measure gives rows, with a reason where a number is missing."""

import math
from typing import Any

import pytest
import torch
from helpers import by_member, cells, data_of, needed, network_of
from one_stack import chosen

from rankfall import components
from rankfall.measure.context import Context
from rankfall.nets.network import Network
from rankfall.rank.centred.assumptions import Unknown
from rankfall.rank.centred.attention import propagate
from rankfall.rank.decomposition.measure import decomposition
from rankfall.rank.law.measure import law
from rankfall.rank.orders import measure as module
from rankfall.rank.paths.measure import paths
from rankfall.rank.residuals.measure import residuals
from rankfall.report.conform import conform

pytestmark = pytest.mark.long

INPUTS = torch.randint(7, (2, 3, 5), generator=torch.Generator().manual_seed(1))
KINDS = ("normaliser", "position", "mask", "sentinels", "attention")
PARTS = [(kind, name) for kind in KINDS for name in components.names(kind)]
REFUSED = {  # the second: a head here has no positive score, so all its weights are equal, to the last digit
    "shaw": "the position adds to what attention makes of the values",
    "relu2_sum": "rows of attention weights differ by rounding only",
}
ADDED = ("log_n", "cosine", "key_normalised", "relu2_sum", "zero_sum", "score_scale", "qk_norm", "softpick")


def network(spread: float = 0.5, **architecture: Any) -> tuple[Network, list[Any]]:
    own = {"position": "none", "norm": "none"} | architecture
    return network_of(noise=spread, seed=3, **own), cells(architecture=own, grid={"seed": [0, 1]})


@pytest.mark.parametrize(("kind", "name"), PARTS)
def test_measures_of_a_network(kind: str, name: str) -> None:
    facts = components.describe(kind, name).facts  # type: ignore[union-attr]
    made, both = network(**needed(kind, name) | {kind: name})
    context = Context(made, data_of(INPUTS), both)
    for row in by_member(law, context, samples=2):
        assert row["method"] == "centred" or row["method_reason"]
        assert row["log10_residual"] is not None and not math.isnan(row["log10_residual"])
    assert by_member(residuals, context)
    if kind == "attention" and not {"weights", "heads", "values"} <= set(facts.get("PROVIDES", ())):
        return  # refused: paths and decomposition USE what it does not have
    assert all(0 <= row["accuracy"] <= 1 for row in by_member(paths, context, counts=[2], repeats=1))
    if "values" not in facts.get("BREAKS", ()):
        assert all(row["error"] < 1e-10 for row in by_member(decomposition, context))


@pytest.mark.parametrize(("kind", "name"), [part for part in PARTS if part[0] != "attention"])
def test_the_centred_pass_is_the_plain_one(kind: str, name: str) -> None:
    """Layer by layer where rows differ by much; positions that act on values have none, and say so."""
    made, _ = network(**{kind: name})
    if name in REFUSED:
        with pytest.raises(Unknown, match=REFUSED[name]):
            propagate(made, INPUTS)
        return
    states = propagate(made, INPUTS)
    for x, state in zip(made.states(INPUTS), states):
        x = x[..., state.tokens, :]
        direct = x - x.mean(-2, keepdim=True)
        torch.testing.assert_close(state.rest.value(), direct, rtol=1e-8, atol=1e-10 * float(x.abs().max()))


def orders(**parts: list[Any]) -> list[dict[str, Any]]:
    few = {"masks": ["none", "causal"], "sentinels": ["none", "cls_sep"], "blocks": ["attention alone"], "heads": [2]}
    found = module.orders(Context(), draws=2, **(few | parts))  # type: ignore[arg-type]
    assert len(conform("orders", found)) == len(found)
    return found


def agrees(rows: list[dict[str, Any]]) -> None:
    """With theory, but for a few entries whose draws differ: relu^2 may give a sentinel no weight at all, and sharp cosines hardly any."""
    res = [row for row in rows if row["quantity"] == "res"]
    unclear = [row for row in res if row["order"] is None]
    assert len(unclear) <= 0.03 * len(res) and {row["normaliser"] for row in unclear} <= {"relu2_sum", "cosine"}
    assert all("depends on the draw: 0 in" in row["reason"] for row in unclear)
    for row in res:
        assert row["theory"] is not None and row["theory_reason"]
        assert row["order"] is None or abs(row["order"] - row["theory"]) < 0.02, row


def test_orders_of_normalisers() -> None:
    rows = orders(normalisers=list(ADDED), positions=["none"])
    agrees(rows)
    plain = [
        row for row in chosen(rows, quantity="res", position="none", mask="none", sentinels="none") if row["biases"]
    ]
    assert {row["normaliser"] for row in plain if row["method"] == "centred" and round(row["order"]) == 3} == set(ADDED)


def test_orders_of_attentions_of_scores() -> None:
    """A gate passes the residual on, but where rows of weights sum to zero it multiplies nothing; two softmaxes contract as one does."""
    normalisers: list[Any] = ["softmax", "exp", "zero_sum", "sink", "score_scale", "qk_norm", "softpick"]
    rows = orders(attentions=["gated", "differential"], normalisers=normalisers, positions=["none"])
    agrees(rows)
    plain = chosen(rows, quantity="res", mask="none", sentinels="none", biases=True)
    alone = {(row["attention"], row["normaliser"]): round(row["order"]) for row in plain}
    gated = {("gated", name): {"zero_sum": 3}.get(name, 1) for name in normalisers}
    assert alone == gated | {("differential", None): 3}


def test_orders_of_recurrences() -> None:
    recurrent = ["retention", "gated_linear", "delta", "selective"]
    rows = orders(attentions=recurrent, masks=["causal"], positions=["none", "rope"])
    agrees(rows)
    assert {round(row["order"]) for row in rows if row["quantity"] == "res"} == {0}


def test_orders_of_positions() -> None:
    agrees(orders(normalisers=["softmax", "zero_sum"], positions=list(components.names("position"))))
