"""Parts of attention together: any that the plan accepts train without NaN, and layers may share a part or have one each."""

import random
from itertools import combinations, product
from typing import Any

import pytest
import torch
from stacks import fit_stack, sorting_stack

from rankfall import components
from rankfall.train.loop import TrainingHistory
from rankfall.train.members import RUNNING, Members

OPTIONS: dict[str, dict[str, dict[str, Any]]] = {
    "attention": {"gau": {"key_width": 16}},
    "position": {
        "t5": {"buckets": 8, "farthest": 8},
        "shaw": {"reach": 3, "shared": False},
        "deberta": {"shared": False},
    },
    "normaliser": {"urpe": {"clip": 3, "shared": False}},
    "mask": {"local": {"window": 2}, "dilated": {"window": 1, "rate": 2, "causal": True}},
}
KINDS = ("normaliser", "position", "mask", "sentinels", "attention")


def facts_of(kind: str, name: str) -> Any:
    described = components.describe(kind, name)
    assert described is not None
    return described.facts


def choices(kind: str) -> list[Any]:
    """Every component of a kind, and where OPTIONS has some with them too."""
    named: list[Any] = list(components.names(kind))
    return named + [{"name": name} | options for name, options in OPTIONS.get(kind, {}).items()]


def trained(architecture: dict[str, Any], seeds: list[int]) -> tuple[Members, TrainingHistory]:
    training = {"epochs": 1, "batch": 10}
    members, data, chosen = sorting_stack(seeds, train=30, test=10, architecture=architecture, training=training)
    return members, fit_stack(members, data, chosen)[0]


def test_layers_of_their_own_are_drawn_and_trained_apart() -> None:
    for chosen in ({"position": {"name": "shaw", "shared": False}}, {"normaliser": {"name": "urpe", "shared": False}}):
        tensors = trained({"position": "none"} | chosen, [0])[0].tensors()
        first, second = (value for name, value in tensors.items() if name.endswith(("keys", "excess")))
        assert not torch.equal(first, second)
    names = list(trained({"position": "shaw"}, [0])[0].tensors())
    assert [name for name in names if name.endswith("keys")] == ["position.keys"]


def pairs(row: tuple[int, ...]) -> set[tuple[int, ...]]:
    return {(a, b, row[a], row[b]) for a, b in combinations(range(len(row)), 2)}


def covering(axes: list[list[Any]]) -> list[tuple[Any, ...]]:
    """Return rows of a choice for each axis in which every pair of choices of two axes occurs: of random rows those with most new pairs."""
    rng, rows = random.Random(0), []
    sizes = list(enumerate(map(len, axes)))
    missing = {(a, b, x, y) for (a, m), (b, n) in combinations(sizes, 2) for x in range(m) for y in range(n)}
    while missing:
        drawn = [[rng.randrange(len(axis)) for axis in axes] for _ in range(50)]
        a, b, x, y = min(missing)
        for row in drawn:
            row[a], row[b] = x, y
        best = max(map(tuple, drawn), key=lambda row: len(pairs(row) & missing))
        rows.append(tuple(axis[choice] for axis, choice in zip(axes, best)))
        missing -= pairs(best)
    return rows


def accepted() -> list[tuple[Any, ...]]:
    """Every pair of parts at least once, and linear attention with all that it takes."""
    scored = [choices(kind) for kind in KINDS[:-1]] + [[it for it in choices("attention") if not masks_of(it)]]
    rows = covering(scored)
    for name in filter(masks_of, components.names("attention")):
        reached = {"states", *facts_of("attention", name)["OFFERS"]}
        positions = [it for it in components.names("position") if set(facts_of("position", it)["TOUCHES"]) <= reached]
        rows += product(["softmax"], positions, masks_of(name), components.names("sentinels"), [name])
    return rows


def masks_of(attention: Any) -> list[str]:
    """Those that it asks for; none where it takes all."""
    wanted = facts_of("attention", attention).get("REQUIRES", ()) if isinstance(attention, str) else ()
    return [
        name
        for fields, _ in wanted
        for name in list(fields["mask"] if isinstance(fields["mask"], list) else [fields["mask"]])
    ]


@pytest.mark.slow  # some hundred architectures
def test_whatever_the_plan_accepts_trains() -> None:
    """Default depth, width, heads, learning rate, 5 seeds in a stack: finite losses."""
    broken = {}
    for count, row in enumerate(accepted()):
        chosen = dict(zip(KINDS, row)) | {"depth": 6, "width": 48, "heads": 2, "mlp": ("none", "gelu")[count % 2]}
        stack, history = trained(chosen, list(range(5)))
        if bool((stack.status != RUNNING).any()) or not bool(history.mean("train", "loss", 0).isfinite().all()):
            broken[str(row)] = stack.status.tolist()
    assert not broken
