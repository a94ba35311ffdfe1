"""Residuals by layer, trained and untrained: how much of its rank each architecture keeps."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from rankfall.errors import RankfallError
from rankfall.report.selection import among, finished, left_out, one_a_seed, one_of
from rankfall.report.style import Picture, band, canvas, palette

if TYPE_CHECKING:
    from pandas import DataFrame

TABLES = ["residuals"]
LABELS = {"residual": "|res(X)| / |X|", "sigma_ratio": "σ₂/σ₁"}


def residuals(
    read: "Callable[[str], DataFrame]",
    *,
    task: str | None = None,
    quantity: Literal["residual", "absolute_residual", "sigma_ratio", "stable_rank", "numerical_rank"] = "residual",
    norm: Literal["composite", "frobenius", "l1", "linf", "spectral"] = "composite",
    centre: Literal["mean", "best"] = "mean",
    architectures: list[str] = [],
    where: dict[str, Any] = {},
) -> Picture:
    """States after each block, of the deepest networks; one panel a training. All architectures of the task that most cells have, unless
    named. `norm` and `centre` are for `residual` alone. `where`: only these cells, by any column."""
    whole = finished(read("residuals"), "residuals", where)
    table, task = one_of(whole, "residuals", "task", task)
    table = among(table, "residuals", "architecture", architectures)
    names = [str(name) for name in architectures or sorted(table.architecture.unique())]
    table = table[(table.place == "state") & (table.quantity == quantity)]
    if quantity == "residual":
        table = table[(table.matrix_norm == norm) & (table.centre == centre)]
    if table.empty:
        raise RankfallError(
            f"figure residuals: the table has no states' {quantity} by norm {norm!r} about centre {centre!r}"
        )
    table = table[table.depth == table.groupby(["architecture", "training"]).depth.transform("max")]
    one_a_seed(table, "residuals", ["architecture", "training"])
    trainings = [str(name) for name in sorted(table.training.unique(), key=lambda name: (name != "init", name))]
    figure, axes = canvas(1, max(1, len(trainings)), 2.9 * max(1, len(trainings)) + 1.0, 3.3, sharey=True)
    equal = table[(table.value == 0)].groupby("architecture").layer.min()
    findings = []
    for panel, training in zip(axes[0], trainings):
        for colour, name in zip(palette(len(names)), names):
            chosen = table[(table.architecture == name) & (table.training == training)]
            if not len(chosen):
                continue
            # Rows that are equal to the last digit have a residual of zero, which a logarithmic axis cannot show.
            chosen = chosen.assign(value=chosen.value.where(chosen.value > 0))
            lines = chosen.groupby("layer").value.agg(["mean", "std"]).dropna(subset="mean").fillna(0.0).reset_index()
            # On a logarithmic axis a band must not reach zero.
            deviation = lines["std"].clip(upper=0.99 * lines["mean"])
            noise = chosen.groupby("layer").floor_share.mean()
            band(panel, lines["layer"], lines["mean"], deviation, colour, name, marker="o")
            hidden = lines[lines.layer.map(noise) > 0]
            panel.plot(hidden["layer"], hidden["mean"], "o", color=colour, markerfacecolor="white", markersize=5)
            floor = chosen[(chosen.layer == chosen.layer.max())].floor_share.mean()
            findings.append(
                f"{training}, {name}: {lines['mean'].iloc[0]:.3g} to {lines['mean'].iloc[-1]:.3g}"
                + (f" ({floor:.0%} of samples at the float64 floor)" if floor > 0 else "")
                + "."
            )
        panel.set_yscale("log")
        panel.set(xlabel="layer", title=training)
    axes[0][0].set_ylabel(LABELS.get(quantity, quantity))
    axes[0][0].legend(fontsize=8, loc="lower left")
    text = (
        f"Relative residual by layer on {task} ({norm} norm about the {'token mean' if centre == 'mean' else 'best centre'}), float64. "
        if quantity == "residual"
        else f"{LABELS.get(quantity, quantity)} by layer on {task}, float64. "
    )
    return Picture(
        figure,
        text
        + "Lines are means over seeds, bands one standard deviation over seeds; hollow: some samples are at the float64 floor. "
        + (
            f"Lines end where rows are equal to the last digit: {', '.join(f'{name} at layer {layer}' for name, layer in equal.items())}. "
            if len(equal)
            else ""
        )
        + left_out(whole, table)
        + " ".join(findings),
    )
