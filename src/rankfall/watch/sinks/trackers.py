"""Trackers of experiments that receive the curves of a run, such as `rankfall/residual/layer_03`. Each is imported only when used."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from rankfall.errors import RankfallError
from rankfall.watch.columns import curves_of

Rows = Sequence[Mapping[str, Any]]
INSTALL = {
    "torch.utils.tensorboard": "pip install 'rankfall[watch]'", "wandb": "pip install 'rankfall[watch]'",
    "trackio": "pip install trackio", "mlflow": "pip install mlflow",
}  # fmt: skip
SHOWN = ("residual", "entropy", "norm")


def import_tracker(name: str, to: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise RankfallError(f"to={to!r} needs {name.rpartition('.')[2]}: {INSTALL[name]}") from error


class FunctionSink:
    """Call a function with the rows of each log, as a list of dicts, and `close` at the end."""

    def __init__(
        self, function: Callable[[list[dict[str, Any]]], Any], close: Callable[[], Any] = lambda: None
    ) -> None:
        self.function, self.close = function, close

    def write(self, rows: Rows) -> None:
        self.function([dict(row) for row in rows])


def print_log(rows: Rows) -> None:
    """Print a line: the loss, and a few quantities in the first and the last layer."""
    parts = [] if rows[0]["loss"] is None else [f"loss {rows[0]['loss']:.4g}"]
    for name in SHOWN:
        known = [row for row in rows if row[name] is not None]
        if known:
            ends = [f"{row[name]:.3g} (layer {row['layer']})" for row in (known[0], known[-1])]
            parts.append(f"{name} {' to '.join(dict.fromkeys(ends))}")
    print(f"rankfall step {rows[0]['step']}: {', '.join(parts)}", flush=True)


def metrics_sink(name: str, function: str) -> FunctionSink:
    """Log to the active run of Trackio or MLflow, at the steps of the training. Trackio's own calls pass `step=`, too."""
    log = getattr(import_tracker(name, name), function)
    return FunctionSink(lambda rows: log(curves_of(rows), step=rows[0]["step"]))


def tensorboard_sink(to: Any) -> FunctionSink:
    """Add scalars to the user's SummaryWriter, or to a new one in 'tensorboard:FOLDER'."""
    writer = to
    if isinstance(to, str):
        writer = import_tracker("torch.utils.tensorboard", to).SummaryWriter(to.partition(":")[2] or "runs")

    def write(rows: Rows) -> None:
        for name, value in curves_of(rows).items():
            writer.add_scalar(name, value, rows[0]["step"], rows[0]["time"])
        writer.flush()

    return FunctionSink(write, writer.close if writer is not to else writer.flush)


class WandbSink:
    """Log to a run of Weights & Biases, over `rankfall/step`, so that the run's step counter is not affected."""

    def __init__(self, run: Any = None) -> None:
        run = import_tracker("wandb", "wandb").run if run is None else run
        if run is None:
            raise RankfallError(
                "to='wandb' writes to the active run, and there is none: call wandb.init(...) before, or give the run, "
                "to=wandb.init(...)"
            )
        self.run = run
        self.open_at: int | None = None  # the run's step in which the last values wait
        run.define_metric("rankfall/step")
        run.define_metric("rankfall/*", step_metric="rankfall/step")

    def write(self, rows: Rows) -> None:
        self.close()
        # These values join what the user logs next.
        self.run.log({"rankfall/step": rows[0]["step"], **curves_of(rows)}, commit=False)
        self.open_at = self.run.step

    def close(self) -> None:
        """Commit the last values if the user has logged nothing since: those of the next step would replace them. The run stays open."""
        if self.open_at is not None and self.run.step == self.open_at:
            self.run.log({}, commit=True)
        self.open_at = None
