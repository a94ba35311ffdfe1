"""Declare the table `model_attention_identity` and what is shown of it: information in the attention weights of real models.

The figure: information in attention weights of models: free directions, second distributions, intervals, effective attention, rank.
"""

from dataclasses import replace

from rankfall.annotations import Axes, DataFrame, Read
from rankfall.identity.attention_identity.shown import CHARTS as OF_CELLS
from rankfall.identity.attention_identity.shown import COLUMNS, EXACT, KEY, TOLERANCE, WHOLE, exact
from rankfall.report.lines import below, collect_labels, on, steps
from rankfall.report.model_names import name_measurements, select_models
from rankfall.report.page.chart import MODEL
from rankfall.report.published_numbers import read_published
from rankfall.report.schema import MODEL_COLUMNS, Table
from rankfall.report.selection import select
from rankfall.report.style import WIDTH, Picture, canvas, space_ticks


def columns() -> Table:
    """Declare the table, with the columns of attention_identity for models."""
    return Table(
        "model_attention_identity",
        "a model x phase x seed x layer x head x length x what is left out x quantity x kind x tolerance",
        (*MODEL_COLUMNS, *COLUMNS),
        key=("model", "revision", "phase", "text", "length", "dtype", "seed", *KEY),
        cells=False,
    )


CHARTS = (
    replace(
        OF_CELLS[0],
        name="model_free",
        title="Free directions of attention weights of real models",
        text="The same for real models, by the length of the text: weights over more tokens than a head has dimensions always have some.",
        line="model",
        choose=(*MODEL[1:], "tolerance"),
        start={"tolerance": TOLERANCE},
        most=(),
        place=20,
    ),
)


DATA = ["identity/model_attention_identity/published.csv"]
PUBLISHED = read_published(__file__)


TABLES = ["model_attention_identity"]
LOOSE = 1e-3
MOST = ("pi", 80)  # from the tenth to the ninetieth percentile
PANELS = {
    "null_simplex": "free directions\nof a row",
    "distance": "distance to the\nfarthest other row",
    "width_largest": "range of the\nlargest weight",
    "correlation": "correlation of raw\nand effective weights",
}


def figure(read: Read, *, models: list[str] | None = None) -> Picture:
    """Draw four quantities against the length of the text, one line per model and phase.

    The last two panels show distance and rank by layer at the greatest length.
    """
    table = select_models(read("model_attention_identity"), "model_attention_identity", models)
    table = select(table, WHOLE)
    table = table[table.value.notna()]
    names = name_measurements(table, axis="length")
    table = table.assign(line=names, value=table.value.astype(float))
    exactly = exact(table)
    longest = table[table.tokens == table.groupby("line").tokens.transform("max")]
    palette = steps(sorted(set(names)))
    figure, axes = canvas(2, 3, WIDTH, 4.2)
    panels = [panel for row in axes for panel in row]
    for panel, (quantity, title) in zip(panels, PANELS.items()):
        on(panel, exactly[exactly.quantity == quantity], "tokens", "value", "line", palette, errorbar=MOST)
        panel.set(xlabel="tokens", ylabel=title)
    on(panels[4], longest[longest.quantity == "distance"], "layer", "value", "line", palette, errorbar=MOST)
    rank = longest[(longest.quantity == "rank") & longest.tolerance.isin([EXACT, LOOSE])]
    on(panels[5], rank.assign(tolerance=rank.tolerance.map("{:g}".format)), "layer", "value", "line", palette, errorbar=None,
       style="tolerance", style_order=[f"{EXACT:g}", f"{LOOSE:g}"], dashes=["", (2, 1.5)])  # fmt: skip
    for panel, title in zip(panels[4:], ("distance to the\nfarthest other row", "rank of T")):
        panel.set(xlabel="layer", ylabel=title, xticks=space_ticks(1, int(table.layer.max()) if len(table) else 1))
    limits(panels[0], panels[5], table, palette)
    below(figure, collect_labels([panels[0]], ("line",)), 4)
    points = exactly.groupby(["line", "tokens", "layer", "quantity"]).value
    caption = (
        "How far the output of a head determines its attention weights: in how many directions a row of weights can change without "
        "effect, how far away the farthest row with the same output is, in which range its largest weight can lie, and how weights "
        "correlate with their part that has an effect. By length of the text, means over layers and heads, bands from the tenth to the "
        "ninetieth percentile; last two, by layer at the greatest length. A head returns its weights times T; the rank of T is at "
        "relative tolerances 1e-10 (solid) and 1e-3 (dashed). Dotted: what the head width gives. "
        f"{describe_finding(exactly)}"
    )
    numbers = points.agg(
        mean="mean", low=lambda x: x.quantile(0.1), high=lambda x: x.quantile(0.9), count="count"
    ).reset_index()
    return Picture(figure, caption, numbers)


def limits(free: Axes, rank: Axes, table: DataFrame, palette: dict[str, str]) -> None:
    """Draw dotted lines at tokens - head width - 1 free directions, and at a rank of the head width."""
    for name, part in table.groupby("line"):
        width = int(part.width.iloc[0] // part.heads.iloc[0])
        lengths = sorted(part.tokens.unique())
        free.plot(lengths, [max(n - width - 1, 0) for n in lengths], color=palette[name], linestyle=":", linewidth=1)
        rank.axhline(width, color=palette[name], linestyle=":", linewidth=1)


def describe_finding(table: DataFrame) -> str:
    """Write how many directions are free at the greatest length, beside the head width."""
    said = []
    for name, part in table.groupby("line"):
        longest = int(part.tokens.max())
        free = part[(part.tokens == longest) & (part.quantity == "null_simplex")].value.mean()
        said.append(
            f"{free:.3g} ({name}, head width {int(part.width.iloc[0] // part.heads.iloc[0])}, {longest} tokens)"
        )
    return (
        f"Directions in which a row can change without effect, its sum kept: {', '.join(said) or 'none was measured'}."
    )
