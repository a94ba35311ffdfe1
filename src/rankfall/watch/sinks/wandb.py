"""Weights & Biases: the same curves in the active run, drawn over `rankfall/step`, so that the run's step counter is not affected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rankfall.errors import RankfallError
from rankfall.watch.columns import curves_of


class WandbSink:
    """Sink that logs to a run: the active one, or the user's."""

    def __init__(self, run: Any = None) -> None:
        if run is None:
            try:
                import wandb
            except ImportError as error:
                raise RankfallError("to='wandb' needs Weights & Biases: pip install 'rankfall[watch]'") from error
            run = wandb.run
            if run is None:
                raise RankfallError(
                    "to='wandb' writes to the active run, and there is none: call wandb.init(...) before, or give the run, "
                    "to=wandb.init(...)"
                )
        self.run = run
        self.open_at: int | None = None  # the run's step in which the last values wait
        run.define_metric("rankfall/step")
        run.define_metric("rankfall/*", step_metric="rankfall/step")

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self.flush()
        self.run.log(
            {"rankfall/step": rows[0]["step"], **curves_of(rows)}, commit=False
        )  # they join what the user logs next
        self.open_at = self.run.step

    def flush(self) -> None:
        """Commit the last values if the user has logged nothing since. Otherwise those of the next step would replace them."""
        if self.open_at is not None and self.run.step == self.open_at:
            self.run.log({}, commit=True)
        self.open_at = None

    def close(self) -> None:
        """Write the remaining values. The run belongs to the user and stays open."""
        self.flush()
