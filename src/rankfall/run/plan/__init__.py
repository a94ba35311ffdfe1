"""The plan: from a configuration to cells, keys and shards. It follows from configuration and code alone; nothing on disk changes it."""

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
