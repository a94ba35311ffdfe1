"""Which tokens attention goes to, raw and effective, by layer: first token, separators, punctuation, others."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from rankfall.report.figures.models import short
from rankfall.report.measured import measured
from rankfall.report.style import COLOURS, Picture, canvas

if TYPE_CHECKING:
    from pandas import DataFrame

TABLES = ["model_attention_identity"]
KINDS = ("first", "separator", "punctuation", "other")


def effective_attention(
    read: "Callable[[str], DataFrame]", *, models: list[str] | None = None, tokens: int | None = None, columns: int = 3
) -> Picture:
    """One panel a model and phase; `tokens`: the length, null: the greatest measured."""
    from matplotlib.ticker import MaxNLocator

    table = measured(read("model_attention_identity"), "effective_attention", models)
    table = table[(table.left_out == "nothing") & table.value.notna()]
    shares = table[table.quantity.isin(["share", "effective_share"])]
    groups = list(shares.groupby(["model", "phase"]))
    columns = max(1, min(columns, len(groups)))
    rows = max(1, -(-len(groups) // columns))
    figure, axes = canvas(rows, columns, 3.1 * columns + 0.4, 2.6 * rows + 0.5, sharey=True)
    panels = [panel for row in axes for panel in row]
    findings = []
    for panel, ((model, phase), part) in zip(panels, groups):
        length = tokens if tokens in set(part.tokens) else int(part.tokens.max())
        part = part[part.tokens == length]
        means = part.groupby(["quantity", "kind", "layer"]).value.mean()
        for colour, kind in zip(COLOURS, KINDS):
            for quantity, style in (("share", "--"), ("effective_share", "-")):
                if (quantity, kind) in means.index.droplevel("layer"):
                    line = means[quantity, kind]
                    name = kind if quantity == "effective_share" else None
                    panel.plot(line.index, line, color=colour, linestyle=style, marker="o", markersize=3, label=name)
        panel.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
        panel.set(xlabel="layer", title=f"{short(model)}, {phase}, {length} tokens", ylim=(0, 1))
        overall = part.groupby(["quantity", "kind"]).value.mean()
        told = ", ".join(
            f"{kind} {overall['share', kind]:.3f} raw and {overall['effective_share', kind]:.3f} effective"
            for kind in KINDS
            if ("share", kind) in overall.index
        )
        findings.append(f"{short(model)}, {phase}: {told}.")
    for panel in panels[len(groups) :]:
        panel.set_visible(False)
    for row in axes:
        row[0].set_ylabel("share of absolute weight")
    if groups:
        for style, name in (("--", "raw"), ("-", "effective")):
            panels[0].plot([], [], color="#555555", linestyle=style, label=name)
        panels[0].legend(fontsize=7.5, ncols=2)
    caption = (
        "Share of absolute attention weight by kind of token, raw (dashed) and effective (solid: what is left when the part "
        "that does not "
        "reach the output is taken off), mean over heads and samples; separators are special tokens other than the first. "
        "Over all layers, "
    )
    return Picture(figure, caption + " ".join(findings))
