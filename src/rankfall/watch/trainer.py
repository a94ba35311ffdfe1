"""A callback for Hugging Face's Trainer: `Trainer(..., callbacks=[RankfallCallback(every=100, to="run.parquet")])`."""

from __future__ import annotations

from typing import Any

from rankfall.errors import RankfallError
from rankfall.watch.start import WatchingCallback

try:
    from transformers import TrainerCallback
except ImportError as error:
    raise RankfallError("RankfallCallback needs transformers: pip install 'rankfall[models,watch]'") from error


class RankfallCallback(WatchingCallback, TrainerCallback):
    """Callback that watches the model of a Trainer from the first step to the last, with the options of `watch`.

    Steps have the Trainer's numbers, also in a training resumed from a checkpoint. Gradients are those after clipping.
    """

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **more: Any) -> None:
        self.begin(model, state.global_step)

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        if self.watcher is not None:
            self.watcher.step(state.global_step + 1)

    def on_train_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self.close()
