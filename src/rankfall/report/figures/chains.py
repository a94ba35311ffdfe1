"""Products of attention matrices along random paths: how close to rank one, against the number of matrices, one line a model and phase."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from rankfall.errors import RankfallError
from rankfall.report.figures.models import short
from rankfall.report.style import Picture, canvas, palette

if TYPE_CHECKING:
    from pandas import DataFrame

TABLES = ["chains"]


def chains(read: "Callable[[str], DataFrame]", *, models: list[str] | None = None) -> Picture:
    """Median over paths with the middle half as a band; values that are rounding are left out."""
    import numpy as np

    table = read("chains")
    for model in models or []:
        if model not in set(table.model):
            raise RankfallError(
                f"figure chains: model {model} was not measured; there is: {', '.join(sorted(table.model.unique())) or 'nothing'}"
            )
    table = table[table.model.isin(models)] if models else table
    shown, noise = table[~table.floor], table[table.floor]
    figure, axes = canvas(1, 1, 4.4, 3.2)
    panel = axes[0][0]
    findings = []
    for colour, ((model, phase), part) in zip(
        palette(shown.groupby(["model", "phase"]).ngroups), shown.groupby(["model", "phase"])
    ):
        levels = part.groupby("chain").residual.quantile([0.25, 0.5, 0.75]).unstack()
        label = f"{short(model)}, {phase}"
        panel.plot(
            levels.index,
            levels[0.5],
            color=colour,
            marker="o",
            label=label,
            linestyle="-" if phase == "pretrained" else "--",
        )
        panel.fill_between(levels.index, levels[0.25], levels[0.75], color=colour, alpha=0.18, linewidth=0)
        pace = np.exp(np.polyfit(levels.index, np.log(levels[0.5]), 1)[0]) if len(levels) > 1 else float("nan")
        findings.append(
            f"{label}: a factor {pace:.2g} a matrix over lengths {levels.index.min()} to {levels.index.max()}."
        )
    panel.set_yscale("log")
    panel.set_xlabel("matrices in the product")
    panel.set_ylabel("relative residual from rank one")
    if findings:
        panel.legend(fontsize=7.5)
    caption = (
        "Products of attention matrices of whole models along random paths, one random head in each of the chosen layers: "
        "median and middle half over paths, composite norm of what the best rank-one part leaves. "
        + (f"{len(noise)} values are left out as rounding noise. " if len(noise) else "")
        + " ".join(findings)
    )
    return Picture(figure, caption)
