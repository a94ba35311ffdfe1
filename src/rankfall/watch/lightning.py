"""A callback for Lightning, in either of its two packages: `Trainer(..., callbacks=[LightningCallback(every=100, to="run.parquet")])`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from rankfall.errors import RankfallError
from rankfall.watch.start import WatchingCallback

if TYPE_CHECKING:
    Callback = object
else:
    try:
        if "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules:
            from pytorch_lightning import Callback
        else:
            from lightning.pytorch import Callback
    except ImportError as error:
        raise RankfallError("LightningCallback needs Lightning: pip install 'rankfall[watch]'") from error


class LightningCallback(WatchingCallback, Callback):
    """Callback that watches a LightningModule during fitting, with the options of `watch`.

    A step is a step of the first optimiser. Gradients are those before Lightning clips them.
    """

    first: int | None = None  # id of the optimiser whose steps count

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self.begin(pl_module, trainer.global_step)

    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        self.first = id(optimizer) if self.first is None else self.first
        if self.watcher is not None and self.first == id(optimizer):
            self.watcher.step()

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self.close()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self.close()

    def close(self) -> None:
        self.first = None
        super().close()
