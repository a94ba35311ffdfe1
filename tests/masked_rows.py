"""Rows of small masked language models as tables have them, with numbers that are easily told apart."""

from typing import Any

from helpers import config

from rankfall.report.rows import cell_columns
from rankfall.run.plan import make_plan

SEEDS = 2
ARCHITECTURES: dict[str, dict[str, Any]] = {
    "soft": {"position": "rope"},
    "learned": {"position": "learned"},
    "gated": {"position": "rope", "attention": {"name": "gau", "key_width": 8}, "normaliser": "l2"},
}
KEPT = {"soft": 0.75, "learned": None, "gated": 0.5}


def abouts() -> list[dict[str, Any]]:
    """What each cell is."""
    raw = config()
    raw["tasks"] = {"words": {"task": "masked_text", "length": 8, "longer": None}}
    raw["architectures"] = {name: {"width": 8} | given for name, given in ARCHITECTURES.items()}
    raw["trainings"] = {"mlm": {"epochs": 2}}
    raw["grid"] = [{"task": "words", "architecture": list(ARCHITECTURES), "training": "mlm", "seed": f"0..{SEEDS - 1}"}]
    return [cell_columns(cell, {"status": "done"}) for cell in make_plan(raw).cells]


def lengths(about: dict[str, Any]) -> list[dict[str, Any]]:
    """Its rows of extrapolation, at one and four times the trained length."""
    kept = KEPT[about["architecture"]]
    base = 0.4 + 0.02 * about["seed"]
    same = {
        "trained_length": 8,
        "chance": 0.05,
        "targets": 100,
        "loss": 3.0,
        "accuracy_trained": base,
        "loss_trained": 3.0,
    }
    rows = [about | same | {"times": 1.0, "length": 8, "accuracy": base, "kept": 1.0, "refused": ""}]
    long = {"times": 4.0, "length": 32, "refused": ""}
    if kept is None:
        nothing = dict.fromkeys(("accuracy", "loss", "accuracy_trained", "loss_trained", "kept"))
        return [*rows, about | same | long | nothing | {"targets": 0, "refused": "position learned admits no more"}]
    return [*rows, about | same | long | {"accuracy": base * kept, "kept": kept}]
