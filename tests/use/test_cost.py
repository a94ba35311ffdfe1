"""Guards the cost of a step: architectures in turn, processor time, and the design of a row of the table of cells."""

import time

import pandas as pd
import torch

from rankfall.design import Architecture, Component, Training
from rankfall.measure.context import Context
from rankfall.report.ranking import read_seeds
from rankfall.report.rows import cell_columns
from rankfall.run.plan import make_plan
from rankfall.use.cost.measure import cost, design, one_thread, time_calls

CONFIG = {
    "name": "cost",
    "tasks": {"sorting": {"train": 20, "test": 10, "length": 5, "symbols": 6}},
    "architectures": {"shallow": {"heads": 2, "width": 16}, "causal": {"heads": 2, "width": 16, "mask": "causal"}},
    "trainings": {"short": {"epochs": 1, "batch": 10}, "init": {"epochs": 0}},
    "grid": [
        {
            "task": "sorting",
            "architecture": ["shallow", "causal"],
            "training": ["short", "init"],
            "depth": 1,
            "seed": [0, 1],
        }
    ],
}


def test_a_sleeping_thread_costs_nothing() -> None:
    assert time_calls(lambda: time.sleep(0.05), 2) < 0.02
    before = torch.get_num_threads()
    with one_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before


def test_trained_architectures_of_a_setting_have_as_many_readings() -> None:
    cells = list(make_plan(CONFIG).cells)
    table = pd.DataFrame([cell_columns(cell, {"status": "done"}) for cell in cells])
    rows = cost(Context(table={"cells": table}.get), rounds=6, steps=1)
    assert {row["key"] for row in rows} == {cell.key for cell in cells if cell.training.epochs}
    for row in rows:
        readings = read_seeds(row["readings"])
        assert len(readings) == 6 and min(readings.values()) <= row["cost_ms"] <= max(readings.values())
        assert row["cost_ms_reason"] == ""
    assert len({row["readings"] for row in rows}) == 2  # the seeds of an architecture share them
    (found,) = {design(Architecture, one) for _, one in table[table.architecture == "causal"].head(1).iterrows()}
    assert found == next(cell.architecture for cell in cells if cell.architecture.name == "causal")
    assert design(Training, table.iloc[0]) == cells[0].training and found.mask == Component("causal")
