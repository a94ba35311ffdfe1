"""The plan: cells, keys and shards of a configuration. It depends only on configuration and code, never on the state of the disk."""

from rankfall.design import Architecture, Component, Task, Training
from rankfall.run.config.types import Compute, Config
from rankfall.run.plan.build import FigurePlan, MeasurePlan, Plan, make_plan
from rankfall.run.plan.cell import Cell

__all__ = [
    "Architecture",
    "Cell",
    "Component",
    "Compute",
    "Config",
    "FigurePlan",
    "MeasurePlan",
    "Plan",
    "Task",
    "Training",
    "make_plan",
]
