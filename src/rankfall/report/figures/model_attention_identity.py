"""What attention weights of models still tell: free directions, distance of a second distribution, intervals, effective attention, rank."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from rankfall.report.figures.models import short
from rankfall.report.measured import measured
from rankfall.report.style import Picture, canvas, palette, spaced

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

TABLES = ["model_attention_identity"]
TOLERANCE = 1e-10
PANELS = (
    ("null_simplex", "free directions of a row"),
    ("distance", "farthest distribution"),
    ("width_largest", "interval of the largest weight"),
    ("correlation", "correlation, raw and effective"),
)


def model_attention_identity(read: "Callable[[str], DataFrame]", *, models: list[str] | None = None) -> Picture:
    """Four quantities against the length of the text, one line a model and phase; then distance and rank by layer at the greatest."""
    table = measured(read("model_attention_identity"), "model_attention_identity", models)
    table = table[(table.left_out == "nothing") & table.value.notna()]
    figure, axes = canvas(2, 3, 9.6, 5.4)
    panels = [panel for row in axes for panel in row]
    groups = list(table.groupby(["model", "phase"]))
    findings = []
    for colour, ((model, phase), part) in zip(palette(len(groups)), groups):
        label = f"{short(model)}, {phase}"
        width = int(part.width.iloc[0] // part.heads.iloc[0])
        for panel, (quantity, name) in zip(panels, PANELS):
            lines = _by_length(part, quantity)
            panel.plot(lines.index, lines["mean"], color=colour, marker="o", label=label)
            panel.fill_between(lines.index, lines["low"], lines["high"], color=colour, alpha=0.18, linewidth=0)
            panel.set(xlabel="tokens", ylabel=name)
        lengths = sorted(part.tokens.unique())
        panels[0].plot(lengths, [max(n - width - 1, 0) for n in lengths], color=colour, linestyle=":", linewidth=1)
        _distances(panels[4], part, colour)
        _ranks(panels[5], part, colour, width)
        findings.append(_finding(part, label, width))
    for panel, name in zip(panels[4:], ("farthest distribution", "rank of T")):
        panel.set(xlabel="layer", ylabel=name)
        panel.set_xticks(spaced(1, int(table.layer.max()) if len(table) else 1))
    if groups:
        panels[0].legend(fontsize=7.5)
    caption = (
        "How far attention weights are determined by what the attention returns. Against the length of the text: directions "
        "in which a row "
        "of weights can change without a change of output or sum (dotted: tokens - head width - 1); distance of the farthest other "
        "distribution with the same output (1: no common token); by how much the largest weight of a row can vary; Pearson correlation "
        "of effective and raw attention. Lines are means over layers and heads, bands from the tenth to the ninetieth "
        "percentile of them. "
        "Last two, by layer at the greatest length: the distance again, and the rank of T at relative tolerances 1e-10 (solid) "
        "and 1e-3 (dashed; dotted: head width). "
    )
    return Picture(figure, caption + " ".join(findings))


def _by_length(table: "DataFrame", quantity: str) -> "DataFrame":
    """Over layers, heads and seeds."""
    chosen = table[(table.quantity == quantity) & (table.tolerance.isna() | (table.tolerance == TOLERANCE))]
    levels = chosen.groupby("tokens").value
    return levels.agg(mean="mean", low=lambda x: x.quantile(0.1), high=lambda x: x.quantile(0.9))


def _distances(panel: "Axes", table: "DataFrame", colour: str) -> None:
    at = table[(table.quantity == "distance") & (table.tokens == table.tokens.max())].groupby("layer").value
    panel.plot(at.mean().index, at.mean(), color=colour, marker="o")
    panel.fill_between(at.mean().index, at.quantile(0.1), at.quantile(0.9), color=colour, alpha=0.18, linewidth=0)


def _ranks(panel: "Axes", table: "DataFrame", colour: str, width: int) -> None:
    at = table[(table.quantity == "rank") & (table.tokens == table.tokens.max())]
    for tolerance, style in ((TOLERANCE, "-"), (1e-3, "--")):
        line = at[at.tolerance == tolerance].groupby("layer").value.mean()
        panel.plot(line.index, line, color=colour, linestyle=style, marker="o")
    panel.axhline(width, color=colour, linestyle=":", linewidth=1)


def _finding(table: "DataFrame", label: str, width: int) -> str:
    longest = int(table.tokens.max())
    at = table[table.tokens == longest]

    def mean(quantity: str) -> str:
        found = at[(at.quantity == quantity) & (at.tolerance.isna() | (at.tolerance == TOLERANCE))].value
        return f"{found.mean():.3g}" if len(found) else "none"

    return (
        f"{label} (head width {width}) at {longest} tokens: {mean('null_simplex')} free directions, farthest distribution at "
        f"{mean('distance')}, interval of the largest weight {mean('width_largest')} wide, correlation {mean('correlation')}."
    )
