"""The plan: cells, keys and shards of a configuration. It depends only on configuration and code, never on the state of the disk."""

from rankfall.run.plan.build import MeasurePlan, Plan, make_plan

__all__ = ["MeasurePlan", "Plan", "make_plan"]
