"""Masked accuracy at other lengths than the trained one, one line an architecture, with its band over seeds."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from rankfall.errors import RankfallError
from rankfall.report.panels import panels_of
from rankfall.report.selection import finished, left_out, one_a_seed, one_of
from rankfall.report.style import CHANCE, Picture, band, canvas, palette

if TYPE_CHECKING:
    from pandas import DataFrame

TABLES = ["extrapolation"]
LABELS = {"accuracy": "masked accuracy", "kept": "share of masked accuracy kept", "loss": "masked loss (nats)"}


def extrapolation(
    read: "Callable[[str], DataFrame]",
    *,
    task: str | None = None,
    training: str | None = None,
    quantity: Literal["accuracy", "kept", "loss"] = "accuracy",
    panels: dict[str, Any] = {},
    where: dict[str, Any] = {},
) -> Picture:
    """`quantity`: accuracy, its share of that at the trained length, or loss. `panels`: {title: [architectures]}; without it one panel has
    all architectures of the task and training that most cells have. `where`: only these rows, by any column."""
    whole = finished(read("extrapolation"), "extrapolation", where)
    table, task = one_of(whole, "extrapolation", "task", task)
    table, training = one_of(table, "extrapolation", "training", training)
    shown = panels_of(table, "extrapolation", panels)
    table = table[table.architecture.isin([name for names in shown.values() for name in names])]
    one_a_seed(table, "extrapolation", ["architecture"])
    refused = table[table.refused != ""]
    drawn = table[table[quantity].notna()]
    if drawn.empty:
        raise RankfallError(f"figure extrapolation: no network of {task} runs at any length that was tested")
    figure, axes = canvas(1, len(shown), 3.6 * len(shown) + 1.4, 3.8, sharey=True)
    findings = []
    for axis, (title, names) in zip(axes[0], shown.items()):
        for colour, name in zip(palette(len(names)), names):
            line = drawn[drawn.architecture == name].groupby("length")[quantity].agg(["mean", "std"]).fillna(0.0)
            line = line.reset_index()
            band(axis, line.length, line["mean"], line["std"], colour, name, marker="o")
            findings.append(f"{name} " + ", ".join(f"{value:.3f}" for value in line["mean"]))
        for trained in sorted(drawn.trained_length.unique()):
            axis.axvline(trained, color="#bbbbbb", linewidth=1, zorder=0)
        if quantity == "accuracy":
            axis.axhline(drawn.chance.mean(), color=CHANCE, linestyle="--", linewidth=1.2, label="chance")
        axis.set_xscale("log", base=2)
        axis.set_xticks(sorted(table.length.unique()), [f"{length:g}" for length in sorted(table.length.unique())])
        axis.set(xlabel="length of the tested windows", title=title)
        axis.legend(fontsize=7.5)
    axes[0][0].set_ylabel(LABELS[quantity])
    lengths = ", ".join(f"{length:g}" for length in sorted(drawn.length.unique()))
    text = (
        f"{LABELS[quantity].capitalize()} on held-out text of {task} in windows of {lengths} tokens, trained at "
        f"{', '.join(f'{length:g}' for length in sorted(drawn.trained_length.unique()))} (grey line): the same tokens are hidden at every "
        f"length. Means over {table.groupby('architecture').seed.nunique().min()} seeds, bands one standard deviation over seeds. "
        + "; ".join(findings)
        + ". "
    )
    if len(refused):
        reasons = sorted({f"{name}: {why}" for name, why in zip(refused.architecture, refused.refused)})
        text += f"Not drawn: {'; '.join(reasons)}. "
    return Picture(figure, text + left_out(whole, table))
