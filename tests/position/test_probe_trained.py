"""Check the trained probe: impossible places are never told apart, and what fails has a reason."""

from typing import Any

import pytest
import torch
from helpers import by_member, cells

from rankfall.measure.context import Context
from rankfall.nets.network import Shape
from rankfall.position.probe_trained.measure import probe_trained
from rankfall.tasks.probe import probe
from rankfall.train import recipe
from rankfall.train.data import Data
from rankfall.train.loop import fit

N, SEEDS, CPU = 6, 2, torch.device("cpu")
TRAINING = {"lr": 5e-3, "batch": 1, "schedule": "cosine", "objective": {"name": "prefixes", "shortest": 4}}
NETWORK = {
    "depth": 2, "heads": 2, "width": 16, "mlp": "gelu", "norm_placement": "pre", "init": {"name": "normal", "deviation": 0.2}
}  # fmt: skip


def trained(epochs: int = 4, **architecture: Any) -> Context:
    """Return networks of some seeds after so many epochs of 20 steps."""
    chosen = cells(
        task={}, architecture=NETWORK | {"position": "none"} | architecture, training=TRAINING | {"epochs": epochs},
        grid={"seed": list(range(SEEDS))},
    )  # fmt: skip
    datasets = [probe(None, length=N, lengths=[4, 9], train=20)] * SEEDS  # type: ignore[arg-type]
    data, design, training = (
        Data.from_datasets(datasets, torch.float32, CPU),
        chosen[0].architecture,
        chosen[0].training,
    )
    shape, seeds = Shape("tokens", "classes", N, 1, N), [cell.seed for cell in chosen]
    members = recipe.initial(design, shape, seeds, [training] * SEEDS, CPU)
    fit(members, data, recipe.objective(training), recipe.course(training))
    return Context(members.module, data, chosen)  # type: ignore[arg-type]


IMPOSSIBLE = [
    {"position": "none"},
    {"position": "toeplitz"},
    {"position": "rope", "mask": "causal"},
    {"position": "none", "normaliser": "exp"},
    {"position": "none", "sentinels": "bos"},
    {"attention": "linear", "mask": "causal"},
]


@pytest.mark.parametrize("parts", IMPOSSIBLE, ids=lambda parts: "-".join(map(str, parts.values())))
def test_what_theory_says_is_impossible_training_does_not_do(parts: dict[str, Any]) -> None:
    """Others have begun to tell places apart by then; here accuracy stays that of one answer for all places."""
    for row in by_member(probe_trained, trained(**parts)):
        assert row["theory_rows"] == row["untrained_rows"] == row["trained_rows"] == 1, row
        assert row["accuracy"] <= row["chance"] == 1 / row["asked"], row
        assert row["agreement"] == "agree" and not row["passes"], row


def test_reflection_allows_half() -> None:
    for row in by_member(probe_trained, trained(position="symmetric", normaliser="exp")):
        assert row["argument"] == "reflection"
        assert row["trained_rows"] <= row["theory_rows"] == -(-row["length"] // 2)
        assert row["accuracy"] <= min(row["theory_rows"], row["asked"]) / row["asked"], row


@pytest.mark.long
@pytest.mark.parametrize(
    "parts", [{"normaliser": "l2", "mask": "causal"}, {"position": "rope", "sentinels": "bos"}], ids=["l2", "sentinel"]
)
def test_what_is_possible_is_learned_and_what_is_not_yet_learned_says_so(parts: dict[str, Any]) -> None:
    inside = [row for row in by_member(probe_trained, trained(epochs=30, **parts)) if not row["beyond"]]
    assert all(row["passes"] and row["agreement"] == "agree" and not row["agreement_reason"] for row in inside), inside
    for row in by_member(probe_trained, trained(epochs=1, **parts)):
        assert row["theory_rows"] == row["length"]
        assert row["passes"] or row["agreement"] == "training falls short", row
        assert row["passes"] or row["agreement_reason"], row
