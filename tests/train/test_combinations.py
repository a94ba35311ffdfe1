"""Parts of attention together: attentions train in a stack as they do alone, and any parts that the plan accepts train without NaN."""

from itertools import combinations, product
from typing import Any

import pytest
import torch
from helpers import cells, needed

from rankfall import components
from rankfall.nets.network import Shape
from rankfall.random_streams import stream
from rankfall.tasks.sorting import sorting
from rankfall.train import recipe
from rankfall.train.data import Data
from rankfall.train.loop import TrainingHistory, fit
from rankfall.train.members import RUNNING, Members

CPU = torch.device("cpu")
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
    found = components.describe(kind, name)
    assert found is not None
    return found.facts


def choices(kind: str) -> list[Any]:
    """Every component of a kind, and where OPTIONS has some with them too."""
    named: list[Any] = list(components.names(kind))
    return named + [{"name": name} | options for name, options in OPTIONS.get(kind, {}).items()]


def trained(architecture: dict[str, Any], seeds: list[int], samples: int = 30, **training: Any) -> tuple[Members, Any]:
    (cell,) = cells(architecture=architecture, training={"epochs": 1, "batch": 10} | training)
    stack = recipe.initial(
        cell.architecture, Shape("tokens", "classes", 5, 6, 6), seeds, [cell.training] * len(seeds), CPU
    )
    drawn = [sorting(stream(seed, "data"), train=samples, test=10, length=5, symbols=6) for seed in seeds]
    data = Data.from_datasets(drawn, getattr(torch, cell.training.dtype), CPU)
    history = TrainingHistory(len(seeds), cell.training.epochs, CPU)
    fit(stack, data, recipe.objective(cell.training), recipe.course(cell.training), history, lambda: None)
    return stack, history


@pytest.mark.parametrize(
    ("kind", "part"),
    [(kind, part) for kind in KINDS for part in choices(kind) if kind == "attention" or not isinstance(part, str)],
    ids=lambda it: it if isinstance(it, str) else f"{it['name']}_with_options",
)
def test_two_steps_in_a_stack_are_those_alone(kind: str, part: Any) -> None:
    own = needed(kind, part) if isinstance(part, str) else {}
    chosen = {"normaliser": "exp", "position": "none", "mlp": "gelu"} | own | {kind: part}
    alone = trained(chosen, [7], samples=20, dtype="float64")[0]
    stacked = trained(chosen, [3, 7, 5], samples=20, dtype="float64")[0]
    assert alone.step_count == 2 and int(alone.status[0]) == RUNNING
    torch.testing.assert_close(stacked.weights[1], alone.weights[0], rtol=1e-12, atol=1e-12)


def test_layers_of_their_own_are_drawn_and_trained_apart() -> None:
    for chosen in ({"position": {"name": "shaw", "shared": False}}, {"normaliser": {"name": "urpe", "shared": False}}):
        found = trained({"position": "none"} | chosen, [0])[0].tensors()
        names = [name for name in found if name.endswith(("keys", "excess"))]
        assert len(names) == 2 and not torch.equal(found[names[0]], found[names[1]])
    names = list(trained({"position": "shaw"}, [0])[0].tensors())
    assert [name for name in names if name.endswith("keys")] == ["position.keys"]


def pairs(row: tuple[Any, ...]) -> set[Any]:
    return {(a, b, str(row[a]), str(row[b])) for a, b in combinations(range(len(row)), 2)}


def covering(axes: list[list[Any]]) -> list[tuple[Any, ...]]:
    """Rows of one choice an axis in which every pair of choices of two axes occurs: always the row with most pairs that are new."""
    left = {(a, b, str(x), str(y)) for a, b in combinations(range(len(axes)), 2) for x in axes[a] for y in axes[b]}
    rows = []
    while left:
        a, b, x, y = min(left)
        fixed = {a: x, b: y}
        row: list[Any] = []
        for axis, options in enumerate(axes):
            if axis in fixed:
                row.append(next(it for it in options if str(it) == fixed[axis]))
                continue
            known = {**{i: str(it) for i, it in enumerate(row)}, **fixed}
            new = [
                sum(
                    (min(i, axis), max(i, axis), *((s, str(it)) if i < axis else (str(it), s))) in left
                    for i, s in known.items()
                )
                for it in options
            ]
            row.append(options[new.index(max(new))])
        rows.append(tuple(row))
        left -= pairs(tuple(row))
    return rows


def accepted() -> list[tuple[Any, ...]]:
    """Every pair of parts at least once, and linear attention with all that it takes."""
    scored = [choices(kind) for kind in KINDS[:-1]] + [[it for it in choices("attention") if not masks_of(it)]]
    found = covering(scored)
    for name in filter(masks_of, components.names("attention")):
        reached = {"states", *facts_of("attention", name)["OFFERS"]}
        positions = [it for it in components.names("position") if set(facts_of("position", it)["TOUCHES"]) <= reached]
        found += product(["softmax"], positions, masks_of(name), components.names("sentinels"), [name])
    return found


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
        stack, history = trained(chosen, list(range(5)), samples=30)
        if bool((stack.status != RUNNING).any()) or not bool(history.mean("train", "loss", 0).isfinite().all()):
            broken[str(row)] = stack.status.tolist()
    assert not broken
