"""MLflow: the curves as metrics of the active run. Without one, MLflow starts a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rankfall.errors import RankfallError
from rankfall.watch.columns import curves_of


class MLflowSink:
    """Sink that logs metrics at the steps of the training."""

    def __init__(self) -> None:
        try:
            import mlflow
        except ImportError as error:
            raise RankfallError("to='mlflow' needs MLflow: pip install mlflow") from error
        self.log = mlflow.log_metrics

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self.log(curves_of(rows), step=rows[0]["step"])

    def close(self) -> None:
        """Do nothing: the run belongs to the user."""
