"""TensorBoard: a curve for each column and layer, `rankfall/residual/layer_03`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rankfall.errors import RankfallError
from rankfall.watch.columns import curves_of


class TensorBoardSink:
    """Sink that adds scalars to a SummaryWriter: a new one in `folder`, or the user's."""

    def __init__(self, folder: str | None = None, writer: Any = None) -> None:
        self.own = writer is None
        if writer is None:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError as error:
                raise RankfallError(
                    f"to='tensorboard:{folder}' needs TensorBoard: pip install 'rankfall[watch]'"
                ) from error
            writer = SummaryWriter(folder)
        self.writer = writer

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        for name, value in curves_of(rows).items():
            self.writer.add_scalar(name, value, rows[0]["step"], rows[0]["time"])
        self.writer.flush()

    def close(self) -> None:
        if self.own:
            self.writer.close()
