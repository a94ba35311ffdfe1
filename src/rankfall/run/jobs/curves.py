"""Write curves of loss and accuracy for TensorBoard while cells train (`compute: {tensorboard: true}`)."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rankfall.errors import RankfallError
from rankfall.train.loop import TrainingHistory, is_count

if TYPE_CHECKING:
    from rankfall.run.plan.cell import Cell


class Curves:
    """Event files of the cells of a stack, one folder a cell. Without a `folder` nothing is written."""

    def __init__(self, folder: Path | None, cells: "Sequence[Cell]", epoch: int) -> None:
        self.writers = []
        self.epoch = epoch  # epochs that are written, by this job or before an interruption
        if folder is None:
            return
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise RankfallError(
                "compute: tensorboard: true needs TensorBoard, which is not installed\nfix: pip install tensorboard"
            ) from error
        for cell in cells:
            task, *names = cell.labels
            name = f"{', '.join(names)}, depth {cell.architecture.depth}, seed {cell.seed} ({cell.key[:6]})"
            self.writers.append(SummaryWriter(str(folder / task / name.replace("/", "_"))))

    def add(self, history: TrainingHistory, epoch: int) -> None:
        """Write the complete epochs that are not yet written. `epoch` is the number of complete epochs."""
        while self.writers and self.epoch < epoch:
            for name in [name for name in history.tensors if not is_count(name)]:
                split, _, metric = name.rpartition(".")
                values = history.mean(split, metric, self.epoch).tolist()
                for writer, value in zip(self.writers, values):
                    if value == value:  # NaN if the split was not evaluated, or if the member had stopped
                        writer.add_scalar(f"{metric}/{split}", value, self.epoch + 1)
            self.epoch += 1

    def close(self) -> None:
        for writer in self.writers:
            writer.close()
