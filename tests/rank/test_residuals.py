"""Check the residual table: places, floors and values against a computation by hand."""

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from helpers import by_member, data_of, network_of
from hypothesis import example, given, settings
from hypothesis import strategies as st
from one_stack import chosen
from resized import resized

from rankfall.measure.context import Context
from rankfall.nets.network import Network
from rankfall.rank import residual
from rankfall.rank.centred.attention import propagate
from rankfall.rank.law.measure import law
from rankfall.rank.residuals.measure import places, residuals
from rankfall.rank.rounding import second_difference

INPUTS = torch.randint(7, (2, 6, 5), generator=torch.Generator().manual_seed(1))
DATA = data_of(INPUTS)


network = partial(network_of, dtype=torch.float32)


def test_values_by_hand() -> None:
    made = network()
    rows = by_member(residuals, Context(made, DATA))
    x = made.double().states(INPUTS)[2][1].numpy()  # second member, last layer
    rest = x - x.mean(1, keepdims=True)
    ratios = [
        np.sqrt(np.linalg.norm(r, 1) * np.linalg.norm(r, np.inf))
        / np.sqrt(np.linalg.norm(m, 1) * np.linalg.norm(m, np.inf))
        for r, m in zip(rest, x)
    ]
    (row,) = chosen(rows, member=1, layer=2, place="state", quantity="residual", matrix_norm="composite", centre="mean")
    assert row["value"] == pytest.approx(np.mean(ratios))
    assert row["deviation"] == pytest.approx(np.std(ratios, ddof=1))
    (row,) = chosen(rows, member=1, layer=2, place="state", quantity="sigma_ratio")
    spectra = np.linalg.svd(x, compute_uv=False)
    assert row["value"] == pytest.approx(np.mean(spectra[:, 1] / spectra[:, 0]))
    (row,) = chosen(rows, member=1, layer=2, place="state", quantity="numerical_rank")
    assert row["value"] == pytest.approx(np.mean([np.linalg.matrix_rank(m) for m in x]))


def test_collapse_is_flagged_at_the_floor() -> None:
    """Attention alone is at rounding noise by the fourth layer, and with skip connections never."""
    for joined, share in (("none", 1.0), ("add", 0.0)):
        rows = by_member(
            residuals, Context(network(depth=4, residual=joined, norm="none", position="none"), DATA), best=False
        )
        last = chosen(rows, layer=4, place="state", quantity="residual", matrix_norm="composite")
        assert [row["floor_share"] for row in last] == [share, share]


def amplifying(placement: str, **architecture: Any) -> Network:
    """Attention with a large bias in all features alike, which the next layer norm takes off: rounding beside it stays, and grows."""
    made = network(depth=4, residual="none", norm="layer", norm_placement=placement, position="none", **architecture)
    for block in made.blocks:
        block.attention.output.bias.data += 1e5
    return made


@pytest.mark.parametrize(("placement", "missed"), [("post", True), ("pre", False)])
def test_amplified_rounding_is_flagged(placement: str, missed: bool) -> None:
    """Against what centred propagation says: wherever the plain value is wrong, old and new flags say so, and nowhere else."""
    made = amplifying(placement)
    rows = by_member(residuals, Context(made, DATA), samples=1, norms=["frobenius"], best=False)
    exact, plain = propagate(made.double(), INPUTS[:, :1]), made.states(INPUTS[:, :1])
    seen = set()
    for member in (0, 1):
        for layer, (state, x) in enumerate(zip(exact, plain)):
            about = {"member": member, "layer": layer, "place": "state"}
            (row,), (relative,) = (chosen(rows, **about, quantity=name) for name in ("absolute_residual", "residual"))
            true, rest = state.rest.value()[member], residual.residual(x[member])
            assert row["value"] == pytest.approx(float(rest.norm()), rel=1e-9)  # of the weights as they are
            error = float((rest - true).norm() / true.norm())
            wrong = error > 0.5
            seen.add((wrong, relative["value"] < residual.floor_of(torch.float64)))
            if wrong or error < 0.01:
                assert (row["floor_share"], relative["floor_share"]) == (wrong, wrong), (layer, member)
    assert ((True, False) in seen) is missed  # above any fixed floor, and noise
    assert (False, False) in seen


def test_law_flags_what_is_not_the_true_value() -> None:
    rows = by_member(law, Context(amplifying("post"), DATA), samples=2)
    assert {row["method"] for row in rows} == {"centred"}
    missed = 0
    for row in rows:
        for name, dtype in (("float64", torch.float64), ("float32", torch.float32)):
            value = row[f"log10_{name}"]
            off = value is None or abs(value - row["log10_residual"]) > 0.05
            low = value is None or 10**value < residual.floor_of(dtype)
            assert row[f"{name}_floor"] == (off or low)
            missed += off and not low
    assert missed
    clean = by_member(law, Context(network(residual="add"), DATA), samples=2)
    assert not any(row["float64_floor"] or row["float32_floor"] for row in clean)


def test_second_direction_is_noise_where_rows_are_multiples() -> None:
    """Far from equal rows of rank one: res is all there, sigma_2 is rounding, whatever it is relative to sigma_1."""
    generator = torch.Generator().manual_seed(0)
    column, row, small, noise, again = (
        torch.randn(shape, generator=generator, dtype=torch.float64)
        for shape in ((6, 1), (1, 4), (6, 4), (6, 4), (6, 4))
    )
    x = column @ row
    assert second_difference(x + 1e-9 * noise, x + 1e-9 * again) > 0.5
    assert second_difference(x + small + 1e-9 * noise, x + small + 1e-9 * again) < 1e-7
    # A turn of the first direction as small as rounding is no noise in the second.
    assert second_difference(x + 1e-6 * small, (x + 1e-6 * small) * (1 + 1e-5)) < 1e-4


@pytest.mark.parametrize("placement", ["post", "pre"])
def test_places_are_around_the_norms(placement: str) -> None:
    made = network(mlp="gelu", norm_placement=placement, sentinels="bos").double()
    found = [(layer, place, state.unit) for layer, place, state in places(made, INPUTS, [])]
    states = [x for _, place, x in found if place == "state"]
    for got, want in zip(states, made.states(INPUTS)):
        torch.testing.assert_close(got, want[:, :, 1:])
    labels = {(layer, place) for layer, place, _ in found}
    assert {(1, "before norm1"), (1, "after norm1"), (2, "before norm2"), (2, "after norm2")} <= labels
    assert ((0, "after norm_in") in labels) is (placement == "post")
    assert ((2, "after norm_out") in labels) is (placement == "pre")
    assert all(x.shape[2] == 5 for _, _, x in found)
    assert not any(block.norm1._forward_hooks for block in made.blocks)


def test_underflow_is_no_collapse() -> None:
    """Of gated units the state falls to 1e-162 and then to zero, and rows stay apart: against states that are brought back to size one."""
    made = network_of(
        depth=8, width=16, attention={"name": "gau", "key_width": 16}, normaliser="softmax", residual="none", norm="none",
        mlp="none", position="none",
    )  # fmt: skip
    assert not made.states(INPUTS)[-1].any()
    rows = by_member(residuals, Context(made, DATA), norms=["frobenius"], best=False)
    last = chosen(rows, layer=8, place="state")
    assert {row["quantity"] for row in last if row["value"] is None} == {"absolute_residual"}
    assert all(row["value_reason"] for row in last if row["value"] is None)
    x, ratios = made.lift(INPUTS), []
    for block in made.blocks:
        size = x.abs().amax((2, 3), keepdim=True)
        x = block(torch.where(size < 1e-20, x / size * 1e-20, x))  # where the unit is homogeneous
        ratios.append((x - x.mean(2, keepdim=True)).norm(dim=(2, 3)) / x.norm(dim=(2, 3)))
    for layer, ratio in enumerate(ratios, 1):
        for row in chosen(rows, layer=layer, place="state", quantity="residual"):
            assert row["value"] == pytest.approx(float(ratio[row["member"]].mean()), rel=1e-9)
            assert row["value_reason"] == ""
    assert float(ratios[-1].min()) > 0.1


SHAPES: list[dict[str, Any]] = [
    {"residual": "none"},
    {"residual": "none", "mlp": "relu"},
    {"residual": "none", "normaliser": "l2", "mask": "causal", "sentinels": "bos"},
    {"residual": "none", "attention": {"name": "gau", "key_width": 8}, "normaliser": "relu2"},
    {"residual": "add", "mlp": "gelu"},
]


@given(
    st.sampled_from(range(len(SHAPES))), st.lists(st.sampled_from([-500, -90, -1, 3, 90, 500]), min_size=3, max_size=3)
)
@settings(max_examples=12, deadline=None)
@example(0, [-90, 500, -500])  # ends at what rounding leaves of equal rows, which another pass rounds otherwise
def test_states_of_any_size_have_the_same_values_or_none(shape: int, powers: list[int]) -> None:
    """The state after each layer is multiplied by a power of two, which the next layer's maps take back."""
    made = network(depth=2, norm="none", position="none", **SHAPES[shape]).double()
    if SHAPES[shape]["residual"] == "add":
        powers = powers[:1] * 3
    scaled = resized(made, powers)
    plain, found = (
        by_member(residuals, Context(one, DATA), samples=1, norms=["composite"], best=False) for one in (made, scaled)
    )
    for one, other in zip(plain, found, strict=True):
        if other["value"] is None:
            assert other["value_reason"]
        elif one["quantity"] != "absolute_residual":
            assert other["value"] == one["value"], (SHAPES[shape], powers, other)
    if max(map(abs, powers)) < 128:
        assert all(row["value"] is not None for row in found if row["place"] == "state")
