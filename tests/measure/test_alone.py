"""A number does not depend on what is beside it: every measure of cells gives a cell the same bits in any stack, order and company."""

import itertools
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers import config

from rankfall import components
from rankfall.run.guards.trial.candidate import Refused
from rankfall.run.jobs.again import Repeats, text
from rankfall.run.jobs.engine import Settings
from rankfall.run.jobs.measuring import MeasuringWork, measure_cells
from rankfall.run.jobs.training import train_cells
from rankfall.run.plan import Plan, make_plan
from rankfall.run.store import Store
from rankfall.train.progress import Progress

pytestmark = pytest.mark.long

SORTING: dict[str, Any] = {"train": 40, "test": 12, "length": 5, "symbols": 6}
OPTIONS: dict[str, Any] = {
    "paths": {"repeats": 1, "counts": [2]},
    "token_identity": {"sentences": 12, "epochs": 1, "hidden": 4},
    "attention_identity": {"samples": 2},
    "attribution": {"samples": 1},
    "circle": {"steps": 9},
    "law": {"samples": 2},
    "residuals": {"samples": 3},
    "cell_influence": {"samples": 2},
    "extrapolation": {"times": [0.5, 1, 2]},
    "probe_trained": {"draws": 1},
}
# What a measure is for, where that is not any network that sorts.
TASKS: dict[str, Any] = {
    "circle": {"circle": {"points": 12}},
    "extrapolation": {"masked_text": {"train": 20, "test": 12, "length": 8, "longer": None, "vocabulary": 100}},
    "probe_trained": {"probe": {"length": 5, "lengths": [7], "train": 20}},
}
PARTS: dict[str, Any] = {
    "circle": {"position": "none"},
    "extrapolation": {"position": "rope"},
    "probe_trained": {"norm_placement": "pre", "position": "none"},
    "offsets": {"position": "toeplitz"},
    "cell_influence": {"mask": "causal"},
    "decomposition": {"mlp": "none", "norm": "none"},
}
TRAINED: dict[str, Any] = {
    "extrapolation": {"objective": "masked_tokens"},
    "probe_trained": {"objective": {"name": "prefixes", "shortest": 3}, "batch": 1},
}
# Of these the search for a centre, and the choice of a method, once were the stack's.
DEEPER: list[tuple[str, dict[str, Any]]] = [
    ("residuals", {"mlp": "none", "residual": "none", "position": "none", "depth": 5}),
    ("law", {"mlp": "none", "norm": "none", "position": "none", "depth": 3, "normaliser": "foreign:Differential"}),
]


def needs_cells(name: str) -> bool:
    found = components.describe("measure", name)
    return found is not None and found.facts.get("NEEDS", "cells") == "cells"


MEASURES = [name for name in components.names("measure") if needs_cells(name)]


def plan_of(name: str, seeds: list[int], parts: dict[str, Any], rates: list[float], measure: str = "") -> Plan:
    """Cells of these seeds, and of learning rates of which the second makes weights thousands of times as large."""
    task = TASKS.get(name, {"sorting": SORTING})
    raw = config(
        architecture={"mlp": "gelu", "residual": "add"} | PARTS.get(name, {}) | parts,
        training={"epochs": 1, "batch": 10} | TRAINED.get(name, {}),
        measures={"it": {"measure": measure or name} | OPTIONS.get(name, {})},
    )
    raw["tasks"] = task
    raw["grid"] = [
        {"task": next(iter(task)), "architecture": "net", "training": "short", "training.lr": rates, "seed": seeds}
    ]
    return make_plan(raw)


def rows_of(plan: Plan, store: Store, stack: int) -> dict[str, str]:
    """Cell key -> its rows, measured anew from what the store has of the cells."""
    settings = Settings(torch.device("cpu"), stack=stack)
    train_cells(plan.cells, store, settings, Progress(), plan.origin)
    shutil.rmtree(store.root / "measures", ignore_errors=True)
    job = MeasuringWork(plan, plan.measure("it"), store, settings, lambda: None)
    found: dict[str, str] = {}
    for key, rows in itertools.groupby(measure_cells(list(plan.cells), job), lambda row: row["key"]):
        listed = list(rows)
        assert {row["status"] for row in listed} == {"done"}, listed[0]
        found[key] = text(listed)
    return found


@pytest.mark.parametrize(
    ("name", "parts"), [*((name, {}) for name in MEASURES), *DEEPER], ids=lambda one: one if one else ""
)
def test_a_cell_has_the_same_bits_in_any_stack(
    name: str, parts: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "rank"))
    store = Store(tmp_path)
    whole = rows_of(plan_of(name, [0, 1], parts, [1e-3, 1.0]), store, 8)
    assert len(whole) == 4 and len(set(whole.values())) > 1
    for seeds, stack in (([1, 0], 2), ([1], 1)):
        found = rows_of(plan_of(name, seeds, parts, [1e-3]), store, stack)
        assert len(found) == len(seeds) and found == {key: whole[key] for key in found}


# A measure as somebody may write it: by what it finds in its company, by chance (which no reading of the source sees), or by what it has
# seen before.
OWN = """
import torch

TABLE = "paths"
before = []


def company(context):
    value = context.network(context.data.test.inputs).abs().amax((1, 2, 3))  # (K,)
    return [{"member": k, "kind": "whole", "accuracy": float(value[k] / value.max())} for k in range(len(value))]


def chance(context):
    return [{"kind": "whole", "accuracy": float(getattr(torch, "rand")(()))}]


def memory(context):
    before.append(0)
    return [{"kind": "whole", "accuracy": 1 / len(before)}]


def tired(context):
    before.append(0)
    return [{"kind": "whole", "accuracy": 0.5 if len(before) < 3 else 1 / 0}]
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    (tmp_path / "own_measures.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_measures", raising=False)
    return Store(tmp_path / "store")


def test_a_measure_sees_no_company(own: Store) -> None:
    """Divided by the largest of its stack, every number would be another in another stack; there is no stack."""
    found = rows_of(plan_of("own", [0, 1], {}, [1e-3, 1.0], "own_measures:company"), own, 8)
    assert len(found) == 4 and all('"accuracy": 1.0' in one for one in found.values())


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("chance", "gives other rows when a cell is measured again: accuracy of row 1 is 0."),
        (
            "memory",
            "keeps state between calls: its global 'before' changed; draw random numbers from context.stream, and",
        ),
    ],
)
def test_a_measure_that_gives_other_rows_at_another_time_is_refused(own: Store, name: str, said: str) -> None:
    plan = plan_of("own", [0, 1], {}, [1e-3, 1.0], f"own_measures:{name}")
    for _ in range(2):  # a refusal is not remembered
        with pytest.raises(
            Refused, match=rf"^measure 'own_measures:{name}' \([^\n]*, {name}\) {re.escape(said)}[^\n]*$"
        ):
            rows_of(plan, own, 8)
        assert not own.find_rows(f"own_measures:{name}", [plan.measure_key("it", cell) for cell in plan.cells])


def test_a_measure_that_raises_the_second_time_is_refused_and_one_that_passed_is_not_tried_again(own: Store) -> None:
    plan = plan_of("own", [0, 1], {}, [1e-3], "own_measures:tired")
    with pytest.raises(Refused, match=r"raises ZeroDivisionError[^\n]* when a cell is measured again"):
        rows_of(plan, own, 8)
    plan = plan_of("own", [0, 1], {}, [1e-3], "own_measures:company")
    rows_of(plan, own, 8)
    job = MeasuringWork(plan, plan.measure("it"), own, Settings(torch.device("cpu")), lambda: None)
    assert Repeats(job).over


# What the first cell leaves behind, under the number of tokens alone: the second has the first one's number, and the first always its own.
LEFT = """
import functools

import numpy as np
import mylab_left

TABLE = "paths"
KEPT = {}
NUMBERS = np.full(64, np.nan)
LATER = None


def of(network):
    return float(network.embedding.weight.double().sum()) if hasattr(network.embedding, "weight") else float(
        sum(value.double().sum() for value in network.parameters())
    )


def rows(value):
    return [{"kind": "whole", "accuracy": value}]


def in_a_table(context):
    tokens, value = context.data.test.inputs.shape[2], of(context.network)
    return rows(KEPT.setdefault(tokens, value))


def in_a_default(context, kept={}):
    return rows(kept.setdefault(context.data.test.inputs.shape[2], of(context.network)))


def holding():
    kept = {}
    return lambda tokens, value: kept.setdefault(tokens, value)


hold = holding()


def in_a_closure(context):
    return rows(hold(context.data.test.inputs.shape[2], of(context.network)))


class Holder:
    kept = {}


def in_a_class(context):
    return rows(Holder.kept.setdefault(context.data.test.inputs.shape[2], of(context.network)))


class Tokens(int):
    pass


@functools.lru_cache
def cached(tokens):
    return tokens.value


def in_a_cache(context):
    tokens = Tokens(context.data.test.inputs.shape[2])
    tokens.value = of(context.network)
    return rows(cached(tokens))


def in_an_attribute(context):
    if not hasattr(in_an_attribute, "kept"):
        in_an_attribute.kept = of(context.network)
    return rows(in_an_attribute.kept)


def in_an_array(context):
    tokens = context.data.test.inputs.shape[2]
    if np.isnan(NUMBERS[tokens]):
        NUMBERS[tokens] = of(context.network)
    return rows(float(NUMBERS[tokens]))


def in_a_global(context):
    global LATER
    LATER = of(context.network) if LATER is None else LATER
    return rows(LATER)


def in_another_file(context):
    return rows(mylab_left.kept.setdefault(context.data.test.inputs.shape[2], of(context.network)))


def honest(context):
    tokens = context.data.test.inputs.shape[2]
    return rows(of(context.network) + KEPT.setdefault(tokens, 1 / tokens))
"""
PLACES = [line.partition("(")[0].removeprefix("def ") for line in LEFT.splitlines() if line.startswith("def in_")]


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store with two cells, and measures that keep something in `own_left.py`."""
    folder = tmp_path_factory.mktemp("left")
    (folder / "own_left.py").write_text(LEFT)
    (folder / "mylab_left.py").write_text("kept = {}\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield Store(folder / "store")
    for name in ("own_left", "mylab_left"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("place", PLACES)
def test_what_the_first_cell_leaves_for_the_second_is_refused_wherever_it_lies(left: Store, place: str) -> None:
    """The first cell, measured again, agrees with itself, and what it kept was there before it was looked for."""
    plan = plan_of("own", [0, 1], {}, [1e-3], f"own_left:{place}")
    said = "gives other rows when no other cell was measured before it: accuracy of row 1 is "
    with pytest.raises(Refused, match=rf"^measure 'own_left:{place}' \([^\n]*, {place}\) {said}[^\n]*$"):
        rows_of(plan, left, 8)
    sys.modules.pop("own_left")
    assert not left.find_rows(f"own_left:{place}", [plan.measure_key("it", cell) for cell in plan.cells])


def test_a_table_of_what_follows_from_the_number_of_tokens_is_kept(
    left: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = plan_of("own", [0, 1], {}, [1e-3], "own_left:honest")
    rows_of(plan, left, 8)
    import own_left  # type: ignore[import-not-found]

    assert list(own_left.KEPT) == [5], "the copy that measured, not the one that was tried"
    assert Repeats(MeasuringWork(plan, plan.measure("it"), left, Settings(torch.device("cpu")), lambda: None)).over
    assert "imported twice" not in capsys.readouterr().out


def test_a_job_of_one_cell_leaves_the_second_half_of_the_trial_to_the_next(left: Store) -> None:
    sys.modules.pop("own_left", None)
    rows_of(plan_of("own", [0], {}, [1e-3], "own_left:in_a_global"), left, 8)
    sys.modules.pop("own_left", None)
    with pytest.raises(Refused, match="when no other cell was measured before it"):
        rows_of(plan_of("own", [0, 1], {}, [1e-3], "own_left:in_a_global"), left, 8)


def test_a_file_that_cannot_be_imported_twice_is_told_and_measured(
    left: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    """As one that registers an operator of torch under a name."""
    twice = "import sys\nif 'own_twice' in sys.argv:\n    raise KeyError('registered twice')\nsys.argv.append('own_twice')\n"
    (left.root.parent / "own_twice.py").write_text(twice + LEFT)
    plan = plan_of("own", [0, 1], {}, [1e-3], "own_twice:honest")
    assert len(rows_of(plan, left, 8)) == 2
    sys.argv.remove("own_twice")
    assert (
        "honest) cannot be imported twice, so it was not tried without what it keeps: KeyError"
        in capsys.readouterr().out
    )
