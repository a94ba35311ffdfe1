"""Raw and effective attention by kind of token and layer: first token, separators, punctuation, others."""

from rankfall.annotations import Read
from rankfall.identity.attention_identity.shown import WHOLE
from rankfall.report.labels import name_measurements, select_models
from rankfall.report.lines import legend_below, lines, steps
from rankfall.report.selection import select
from rankfall.report.style import Picture

TABLES = ["model_attention_identity"]
KINDS = ("first", "separator", "punctuation", "other")
QUANTITIES = {"share": "raw", "effective_share": "effective"}


def figure(read: Read, *, models: list[str] | None = None, tokens: int | None = None) -> Picture:
    """Draw one panel per model and phase.

    `tokens`: the length; null: the greatest measured.
    """
    table = select_models(read("model_attention_identity"), "effective_attention", models)
    table = select(table, WHOLE | {"quantity": list(QUANTITIES)})
    table = table[table.value.notna()]
    network = [table.model, table.phase]
    length = table.groupby(network).tokens.transform("max")
    if tokens is not None:
        length = length.where((table.tokens != tokens).groupby(network).transform("all"), tokens)
    table = table[table.tokens == length]
    titles = [f"{name}, {n} tokens" for name, n in zip(name_measurements(table), table.tokens)]
    table = table.assign(panel=titles, weight=table.quantity.map(QUANTITIES), value=table.value.astype(float))
    points = table.groupby(["panel", "kind", "weight", "layer"]).value.mean().reset_index()
    grid = lines(
        points, "layer", "value", "kind", steps(KINDS), row="panel", row_order=sorted(set(titles)), col="weight",
        col_order=list(QUANTITIES.values()), errorbar=None, shared=("row", True),
    )  # fmt: skip
    grid.set(ylim=(-0.03, 1), ylabel="share of weight")
    legend_below(grid, 4)
    first = points[points.kind == "first"].groupby(["panel", "weight"]).value.mean().unstack()
    shares = "; ".join(f"{row.raw:.2f} and {row.effective:.2f} ({name})" for name, row in first.iterrows())
    caption = (
        "Share of absolute attention weight by kind of token: of the weights themselves (left, raw), and without the part that does not "
        "reach the output (right, effective). Numbers are means over heads and samples. Separators are special tokens other than the "
        f"first. Averaged over layers, the first token has these shares, raw and effective: {shares}."
    )
    return Picture(grid.figure, caption, points)
