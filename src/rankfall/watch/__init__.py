"""Watchers of a training run: what attention loses by layer, measured on the training batches themselves.

    watcher = rankfall.watch(model, every=100, to="run.parquet")

The module is callable like its function `watch`, so that `rankfall.watch(...)` and `from rankfall.watch import
RankfallCallback` both work.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankfall.watch.alarms import RankLoss as RankLoss
    from rankfall.watch.lightning import LightningCallback as LightningCallback
    from rankfall.watch.sinks import read_table as read_table
    from rankfall.watch.start import watch as watch
    from rankfall.watch.trainer import RankfallCallback as RankfallCallback
    from rankfall.watch.watcher import Watcher as Watcher

NAMES = {
    "watch": "start",
    "Watcher": "watcher",
    "RankLoss": "alarms",
    "RankfallCallback": "trainer",
    "LightningCallback": "lightning",
    "read_table": "sinks",
}
__all__ = ["LightningCallback", "RankLoss", "RankfallCallback", "Watcher", "read_table", "watch"]


def __getattr__(name: str) -> Any:
    if name not in NAMES:
        raise AttributeError(f"module 'rankfall.watch' has no attribute {name!r}")
    return getattr(import_module(f"rankfall.watch.{NAMES[name]}"), name)


class CallableModule(ModuleType):
    """The class of this module, which makes it callable."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        from rankfall.watch.start import watch

        return watch(*args, **options)


sys.modules[__name__].__class__ = CallableModule
