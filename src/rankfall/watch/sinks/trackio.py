"""Trackio: the curves in the active run. Steps are those of the training, so the user's own calls pass `step=`, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rankfall.errors import RankfallError
from rankfall.watch.columns import curves_of


class TrackioSink:
    """Sink that logs to the run of `trackio.init`."""

    def __init__(self) -> None:
        try:
            import trackio
        except ImportError as error:
            raise RankfallError("to='trackio' needs Trackio: pip install trackio") from error
        self.log = trackio.log

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self.log(curves_of(rows), step=rows[0]["step"])

    def close(self) -> None:
        """Do nothing: the run belongs to the user."""
